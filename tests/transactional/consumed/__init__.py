"""Transactions that others read beside the subscriber: none is missing, none is doubled, and no replication notices."""
