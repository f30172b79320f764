"""Strategies: what may enter the join, what is probed, what is evicted, and what is learned from it."""
