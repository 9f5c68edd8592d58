"""Identifiers, durations, schedules, intervals, text forms and sortable keys.

No rule stands here, and nothing reads or writes.
"""
