"""The one transaction of a target: repeated as a whole, or ended, and edits in between; `tests/link/kills` kills it."""
