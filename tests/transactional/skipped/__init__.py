"""Errors that a replication may pass over: what fails is kept, and found again by a comparison."""
