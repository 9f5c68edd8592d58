"""Calls of procedures travel in place of the rows that these change, and the subscriber calls its own."""
