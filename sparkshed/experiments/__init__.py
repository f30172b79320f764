"""Experiments on a virtual clock: deterministic for a seed, so that results are exact."""
