"""A site's chores beside its links: tombstones go, links are forgotten, versions stamped anew, people decide.

No row is carried here.
"""
