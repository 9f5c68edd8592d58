"""Snapshots that cannot be provisioned. What refreshes do stands in `tests/link/snapshots`."""
