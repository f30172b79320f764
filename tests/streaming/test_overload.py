"""The streaming benchmarks: what they call the truth is the truth, and both sides do the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkshed.bench import microbatches, soak, streaming
from sparkshed.bench.timing import WrongResult


def test_the_exact_join_of_live_cameras_delivers_everything(enabled):
    # The sample holds all rows, so the truth is exact, too.
    found = streaming.measure(enabled, "exact", 60.0, 1.0, 12.0)
    assert found.truth == found.completeness == found.z == 1
    assert found.results > 0
    assert found.batches >= 1
    assert set(found.as_dict()) >= {"settled", "waiting", "over"}


def test_both_sides_of_the_micro_batches_find_the_same(enabled, tmp_path):
    band, _, equality, _ = microbatches._cases(12, 40)
    for case in (band, replace(equality, files=2)):
        folder = tmp_path / case.name
        folder.mkdir()
        microbatches.write_files(case.tables, case.files, folder)
        found = {
            engine: microbatches._measure(enabled, case, engine, frame, folder, 0)
            for engine, frame in case.sides.items()
        }
        assert len({own.results for own in found.values()}) == 1
        assert found["sparkshed"].results > 0
        assert {own.batches for own in found.values()} == {case.files}
        if case.files > 1:
            rows = list(microbatches._compared(case, found))
            assert [row.engine for row in rows] == ["spark", "spark-plain-files", "sparkshed"]
            assert rows[2].ratio_to_sparkshed == 1
            assert min(row.ratio_to_sparkshed for row in rows) > 0
            wrong = {**found, "spark": replace(found["spark"], results=1)}
            with pytest.raises(WrongResult, match="disagree"):
                list(microbatches._compared(case, wrong))


@pytest.mark.long
def test_a_long_run_is_watched(enabled):
    rows = soak.run(enabled, 60.0, 20.0, lambda line: None)
    assert len(rows) == 10
    assert all(row.jvm_mb > 100 and row.workers_mb > 50 for row in rows)
    assert rows[-1].window_rows > 0
