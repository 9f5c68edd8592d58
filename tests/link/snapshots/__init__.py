"""Read-only copies of a query at another site."""
