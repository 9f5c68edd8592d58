"""Constraints across rows, which a write under replica role must keep itself: unique values, parents and children.

Each rule stands in `concord.rules`; here is its SQL.
"""
