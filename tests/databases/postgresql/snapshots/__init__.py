"""Snapshots that cannot be provisioned. `tests/link/snapshots` holds the tests of refreshes."""
