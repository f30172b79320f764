"""Benchmarks: each one times several engines on the same data in one run."""
