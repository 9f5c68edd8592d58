"""The planted errors, by what they are in."""
