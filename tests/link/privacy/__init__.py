"""What is private leaves the site in no ledger and in no message."""
