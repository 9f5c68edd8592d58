"""A private value leaves the site in no ledger and in no message."""
