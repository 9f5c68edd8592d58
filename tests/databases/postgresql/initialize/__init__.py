"""Loads of empty tables. What two sites hold afterwards stands in `tests/link/initialization`."""
