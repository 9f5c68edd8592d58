"""The fixtures of tests: sites, links between them, random edits, and what to look at afterwards.

No test stands here.
"""
