"""The controller's memory: leases, runs, transmissions and conflicts, in SQLite or PostgreSQL.

It can be lost and rebuilt: the positions live at the sites, never here (F64).
"""
