"""Upkeep of queued replications. `tests/transactional` has their conflicts, and their histories under kills."""
