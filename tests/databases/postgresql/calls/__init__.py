"""Calls of procedures at a publisher, and their marks. `tests/transactional/calls` has whole replications of them."""
