"""Queued updating: each row travels with its versions, and a subscriber takes back what lost."""
