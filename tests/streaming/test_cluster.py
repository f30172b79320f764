"""Driver and executors in different processes: decisions reach the hosts all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from streaming.feeds import copied

CHILD = Path(__file__).with_name("cluster_child.py")


def test_decisions_reach_hosts_in_other_processes(four_files, tmp_path):
    copied(four_files, tmp_path, range(4))
    ran = subprocess.run([sys.executable, str(CHILD), str(tmp_path)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["executors"]
    assert found["driver"] not in found["executors"]
    assert found["part"]
    assert 0.05 < found["share"] < 1
    # The last batches followed a decision of the driver.
    assert found["decision"] > 0
