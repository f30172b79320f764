"""The overload benchmark: what it calls the truth is the truth."""

from __future__ import annotations

from sparkshed.bench import streaming


def test_the_exact_join_of_live_cameras_delivers_everything(enabled):
    # The sample holds all rows, so the truth is exact, too.
    found = streaming.measure(enabled, "exact", 60.0, 1.0, 12.0)
    assert found.truth == found.completeness == found.z == 1
    assert found.results > 0
    assert found.batches >= 1
    assert set(found.as_dict()) >= {"settled", "waiting", "over"}
