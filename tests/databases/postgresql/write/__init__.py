"""Staged rows and the versions that they meet, verdict by verdict; sessions beside the write, the relay, identities."""
