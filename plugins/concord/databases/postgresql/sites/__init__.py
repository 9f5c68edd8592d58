"""A site as it stands, and its two ends of a link: what the driver asks of them.

Nothing is provisioned here.
"""
