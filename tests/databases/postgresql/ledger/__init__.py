"""A site's ledger, to the last value."""
