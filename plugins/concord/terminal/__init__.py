"""`python -m concord`: one file for each command, and what a terminal shows.

No rule is decided here.
"""
