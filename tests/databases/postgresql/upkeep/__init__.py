"""Tombstones go, losers come back: what is done at a site beside its links."""
