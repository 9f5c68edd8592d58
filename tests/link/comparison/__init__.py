"""Differences between two sites are found, and repaired."""
