"""Capture: shadow tables, and the triggers that stamp them as users change rows.

No link is known here.
"""
