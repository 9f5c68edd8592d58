"""What every database must do: the contract that links, comparisons and snapshots are written against.

It names no database.
"""
