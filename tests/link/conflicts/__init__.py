"""Edits at two sites meet: who wins, what a merge makes, and what the ledger keeps."""
