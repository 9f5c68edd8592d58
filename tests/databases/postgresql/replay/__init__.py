"""Entries that are gathered from a log, and their rows. `tests/transactional` replays them at real servers."""
