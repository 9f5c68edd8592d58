"""A hook within one write: what it is shown, changes, refuses and adds. `tests/link/hooks` has whole links."""
