"""Errors to plant, and the tests that must find them (`make mutants`)."""
