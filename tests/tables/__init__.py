"""What is replicated: mappings, filters, privacy, identities."""
