"""Concord keeps writable copies of relational tables in agreement."""
