"""Calls and their marks at a site. `tests/transactional/calls` has real servers carry, refuse and forge them."""
