"""No test stands here: comparisons read both sites, and are tested in `tests/link/comparison`."""
