"""How much effort is left for the rest of a micro-batch."""

from __future__ import annotations

import pytest

from sparkshed.engine.pacing import Progress


def progress(rows=(100, 100), limit=1000.0, known=(), *, filling=False) -> Progress:
    return Progress(rows, limit, known, filling=filling)


def test_a_batch_within_its_limit_is_left_alone():
    own = progress()
    own.add((50, 50), (200.0, 200.0), 1.0)
    assert own.budget(1.0) == 1
    assert not own.is_too_much(1.0)
    assert own.share == 1


def test_what_is_left_is_shared_by_the_rows_that_are_left():
    own = progress()
    own.add((50, 50), (400.0, 400.0), 1.0)
    assert own.is_too_much(1.0)
    assert own.budget(1.0) == pytest.approx(200 / 800)
    own.add((25, 25), (50.0, 50.0), 0.25)
    assert own.budget(0.25) == pytest.approx(100 / 400)
    own.add((25, 25), (50.0, 50.0), 0.25)
    assert own.is_over and own.left == [0, 0]
    assert own.to_come == [100, 100], "a plan without rows would be one for nothing, and is kept for the next"
    assert own.share == pytest.approx(1000 / 1600)


def test_rows_of_a_dear_stream_that_are_still_to_come_are_not_forgotten():
    own = progress(known=(100.0, 1.0))
    own.add((0, 50), (0.0, 50.0), 1.0)
    assert own.is_too_much(1.0), "the first stream costs a hundred times as much, and had no rows yet"
    assert own.budget(1.0) == pytest.approx(950 / (100 * 100 + 50), rel=0.01)


def test_little_is_left_after_the_limit_but_something_is_learned():
    own = progress()
    own.add((50, 50), (5000.0, 5000.0), 1.0)
    assert own.budget(1.0) == pytest.approx(0.05 * 0.5 * 1000 / 10000)


def test_the_share_grows_step_by_step():
    own = progress()
    own.add((10, 10), (1e-3, 1e-3), 1e-4)
    assert own.budget(1e-4) == pytest.approx(4e-4)
    assert own.is_close(4e-4, 5e-4) and not own.is_close(1e-4, 4e-4)


def test_windows_that_fill_make_later_rows_dearer():
    filling, full = progress(filling=True), progress()
    for own in (filling, full):
        own.add((50, 50), (250.0, 250.0), 1.0)
    assert filling.budget(1.0) == pytest.approx(500 / 1500)
    assert full.budget(1.0) == 1


def test_what_is_expected_is_what_rows_of_the_last_batch_cost():
    assert progress().expected(1.0) is None
    assert progress(known=(4.0, 1.0)).expected(0.5) == pytest.approx(0.25)
    own = progress(known=(4.0, 1.0))
    own.add((100, 100), (800.0, 100.0), 1.0)
    assert own.per_row == pytest.approx([(800 + 25) / 106.25, 1.0])


def test_a_tiny_share_of_the_work_says_little_of_the_whole():
    own = progress(limit=1000.0, known=(10.0, 10.0))
    own.add((50, 50), (50.0, 50.0), 0.1)
    # Learning alone cost this much; a millionth of the work did not.
    own.add((50, 50), (5.0, 5.0), 1e-6)
    assert own.per_row == pytest.approx([24.0, 24.0], rel=0.1), "at most four times what the last ones cost"
    assert own.share == pytest.approx(110 / 5000)
    for other in (progress(), progress(limit=10.0, known=(10.0, 10.0))):
        other.add((50, 50), (5.0, 5.0), 1e-6)
        assert other.share == pytest.approx(1e-6), "nobody knows better, or there is no time for even that"
