"""One site of a comparison: hashes by range, rows by key, in one cut.

It only reads.
"""
