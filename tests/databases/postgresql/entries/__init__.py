"""Entries that are gathered, and their rows. `tests/transactional` reads them at real servers."""
