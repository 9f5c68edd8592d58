"""The ways out of a conflict that docs/both-ways.md names, from either side."""
