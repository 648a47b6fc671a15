"""Benchmarks: what was measured, what follows from it, and the files that hold it."""
