"""What people and logs are told: errors in their words, events, counts, progress.

Nothing here decides anything.
"""
