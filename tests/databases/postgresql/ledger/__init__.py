"""What a site's ledger holds, to the last value."""
