"""Python workers: what PySpark's collection of garbage after every task looks at."""

import subprocess
import sys

import pytest

PACK = "from sparkshed.spark.streaming.packing import packer; list(packer(0, [0])(iter([])))"
UNPACK = "from sparkshed.spark.streaming.packing import unpack; list(unpack([]))"
JOIN = (
    "from sparkshed.spark.streaming.hosting import join; "
    "task = join(None, '', 0, None, [], None)\n"
    "try: next(task)\n"
    "except AttributeError: pass"  # no plan: modules are left out before anything is read
)
COUNTED = "import gc; print(gc.get_freeze_count(), len(gc.get_objects()))"


@pytest.mark.parametrize("task", [PACK, UNPACK, JOIN], ids=["pack", "unpack", "join"])
def test_modules_are_left_out_from_the_first_task_on(task):
    ran = subprocess.run(
        [sys.executable, "-c", f"{task}\n{COUNTED}"], capture_output=True, text=True, check=True
    )
    left_out, looked_at = map(int, ran.stdout.split())
    assert left_out > 10 * looked_at


def test_rows_of_later_tasks_are_looked_at():
    later = f"{PACK}\nrows = [[] for _ in range(100_000)]\n{PACK}\n{COUNTED}"
    ran = subprocess.run([sys.executable, "-c", later], capture_output=True, text=True, check=True)
    assert int(ran.stdout.split()[1]) > 100_000
