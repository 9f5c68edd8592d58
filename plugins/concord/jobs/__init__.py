"""What one job is told and reports: a link, a snapshot, a comparison, a first load.

How it is done stands elsewhere.
"""
