"""No test stands here: it is one of a whole link, and tested in `tests/link/kills` and `tests/link/waiting`."""
