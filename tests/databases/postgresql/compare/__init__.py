"""What one site, or two, answer to a comparison. Whole comparisons are in `tests/link/comparison`."""
