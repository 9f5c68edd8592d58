"""The replicated parts: mappings, filters, privacy, identities."""
