"""Snapshots: read-only copies of a query, filled and followed.

They know no conflict.
"""
