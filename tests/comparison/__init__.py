"""Two sites laid side by side, without Spark or a database. Whole comparisons stand in `tests/link/comparison`."""
