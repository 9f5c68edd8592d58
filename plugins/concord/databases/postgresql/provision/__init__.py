"""A site is made ready, or taken down: control objects, triggers, rights, logins; run, or printed for a DBA.

It stands above all other rooms of this database.
"""
