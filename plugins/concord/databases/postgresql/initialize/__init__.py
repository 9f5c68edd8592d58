"""How a site gets its first rows, or comes back: plan, key ranges, chunks, loads.

`concord.rules` decides about two rows.
"""
