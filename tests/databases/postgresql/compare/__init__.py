"""The answers of one site, or of two, to a comparison. Whole comparisons are in `tests/link/comparison`."""
