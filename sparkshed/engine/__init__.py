"""A micro-batch multi-way windowed join in numpy and Arrow. It knows nothing about Spark."""
