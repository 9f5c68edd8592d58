"""Loads of empty tables. `tests/link/initialization` compares both sites afterwards."""
