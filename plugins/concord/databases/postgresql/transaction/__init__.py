"""The one transaction of a target: all tables judged, written and verified, or none.

How one table is written stands in `write`.
"""
