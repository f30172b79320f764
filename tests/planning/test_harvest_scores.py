"""Scores from histograms beside what they estimate."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from sparkshed.planner.harvest import pairwise_scores, per_stream_scores

HALF = 10


def lags(rng: np.random.Generator, middle: float, width: float, count: int) -> np.ndarray:
    return np.clip(rng.normal(middle, width, count), -HALF, HALF - 1e-9)


@pytest.fixture(scope="module")
def sample() -> list[np.ndarray]:
    """T_l − T_0 of many results, in basic windows; stream 0 is the reference."""
    rng = np.random.default_rng(7)
    count = 400_000
    return [np.zeros(count), *(lags(rng, *each, count) for each in ((2.5, 1.5), (-3.2, 0.8), (0.1, 3.0)))]


@pytest.fixture(scope="module")
def histograms(sample) -> list[np.ndarray]:
    return [np.histogram(lag, bins=2 * HALF, range=(-HALF, HALF))[0] for lag in sample]


@pytest.mark.parametrize(("origin", "target"), list(permutations(range(4), 2)))
def test_per_stream_scores_are_those_of_independent_lags(sample, histograms, origin, target):
    first, n = -12, 24
    scores = per_stream_scores(histograms, origin, target, first, n)
    difference = sample[origin] - sample[target]
    truth = [np.mean((difference >= k) & (difference < k + 1)) for k in range(first, first + n)]
    # Lags are even within a bucket only in the model, so pairs of streams other than the reference blur.
    assert scores == pytest.approx(truth, abs=0.003 if 0 in (origin, target) else 0.03)
    assert sum(scores) == pytest.approx(1.0, abs=0.01)
    assert len(scores) == n


def test_per_stream_scores_are_exact_for_lags_that_are_even_within_buckets():
    rng = np.random.default_rng(1)
    counts = [np.zeros(6), rng.integers(0, 9, 6), rng.integers(0, 9, 6)]
    drawn = [rng.choice(6, 1_000_000, p=c / c.sum()) - 3 + rng.random(1_000_000) for c in counts[1:]]
    scores = per_stream_scores(counts, 2, 1, -6, 12)
    truth = np.histogram(drawn[1] - drawn[0], bins=12, range=(-6, 6))[0] / 1_000_000
    assert scores == pytest.approx(truth.tolist(), abs=0.003)
    assert sum(scores) == pytest.approx(1.0)


def test_the_reference_is_a_point():
    bucket = [0, 0, 0, 5]  # all lags in [1, 2)
    assert per_stream_scores([[], bucket], 1, 0, 0, 3) == (0, 1, 0)
    assert per_stream_scores([[], bucket], 0, 1, -3, 3) == (0, 1, 0)


def test_histograms_may_have_different_lengths():
    short, long = [0, 1], [0, 0, 0, 0, 1, 0]  # lags in [0, 1) and in [1, 2)
    assert per_stream_scores([[], short, long], 2, 1, -1, 4) == (0, 0.5, 0.5, 0)
    assert per_stream_scores([[], short, long], 1, 2, -3, 4) == (0, 0.5, 0.5, 0)


def test_nothing_seen_is_nothing_known():
    assert per_stream_scores([[], [0, 0], [0, 0]], 1, 2, 0, 2) == (0, 0)
    assert pairwise_scores([0, 0, 0, 0], prior=0.0) == (0.25,) * 4


def test_slices_beyond_the_histogram_have_no_results():
    assert per_stream_scores([[], [1, 1]], 1, 0, 1, 3) == (0, 0, 0)


def test_pairwise_scores_approach_the_shares():
    assert pairwise_scores([10_000, 30_000]) == pytest.approx((0.25, 0.75), abs=1e-4)
    assert pairwise_scores([0, 1], prior=2.0) == pytest.approx((1 / 3, 2 / 3))


def test_blur_keeps_the_total_and_the_ends():
    assert pairwise_scores([8, 0, 0], prior=0.0, blur=0.5) == (0.75, 0.25, 0)
    assert pairwise_scores([0, 8, 0], prior=0.0, blur=0.5) == (0.25, 0.5, 0.25)
    assert pairwise_scores([8], prior=0.0, blur=0.5) == (1,)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="not joined with itself"):
        per_stream_scores([[], [0, 1]], 1, 1, 0, 2)
    with pytest.raises(ValueError, match="stream 1 needs an even number of buckets"):
        per_stream_scores([[], [0, 1, 2]], 1, 0, 0, 2)
    for counts in ([], [1, -1], [1, float("nan")], [[1]]):
        with pytest.raises(ValueError, match="counts must be"):
            pairwise_scores(counts)
