"""One job's orders and its report: a link, a snapshot, a comparison, a first load.

How it is done stands elsewhere.
"""
