"""PostgreSQL's own facts: sessions, catalogue, types, rights.

The other rooms of this database stand on it, and it knows none of them.
"""
