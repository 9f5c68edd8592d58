"""A table's hook at a site: asked about the rows that are about to be written, and the rows that it adds elsewhere.

Of a replication `replay` asks it.
"""
