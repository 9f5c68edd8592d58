"""PostgreSQL's own facts: connections, catalogue, types, rights.

The other rooms of this database stand on it, and it knows none of them.
"""
