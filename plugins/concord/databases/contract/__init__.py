"""The contract that every database fulfils: links, comparisons and snapshots are written against it.

It imports no database's package.
"""
