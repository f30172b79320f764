"""Generated streams with known answers, for the demo, the benchmarks and the tests."""
