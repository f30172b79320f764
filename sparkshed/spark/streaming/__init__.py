"""Streaming execution: a native streaming DataFrame, and the loop on the driver that adapts it."""
