"""Sessions beside the write, the relay into staging, and shares of identities."""
