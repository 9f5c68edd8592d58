"""Runs that stay in both directions at once, where both sites of a replication write."""
