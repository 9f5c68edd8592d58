"""The replicated parts: tables, columns, mappings, filters, privacy, identity ranges.

No connection is opened here.
"""
