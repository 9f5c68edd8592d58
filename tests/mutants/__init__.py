"""Planted errors, each with the test that must fail (`make planted`), and a mutation library (`make mutants`)."""
