"""How a site gets its first rows, or comes back: plan, key ranges, chunks, loads.

What holds of two rows is decided in `concord.rules`.
"""
