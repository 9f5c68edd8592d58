"""The words that people and logs get: errors, events, counts, progress.

Nothing here decides anything.
"""
