"""No test stands here: hooks run within a write. `tests/link/hooks` and `tests/transactional/hooks` have them run."""
