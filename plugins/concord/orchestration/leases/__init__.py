"""Leases: a run holds one, keeps it, waits for another one in no worker, or learns that its holder has ended.

The work under a lease stands in `tasks`.
"""
