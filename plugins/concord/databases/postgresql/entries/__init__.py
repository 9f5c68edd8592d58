"""Entries: a publisher's transactions, read from its log or its triggers' records, staged as rows."""
