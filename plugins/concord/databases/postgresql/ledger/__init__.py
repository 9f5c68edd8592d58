"""A site's record for people: rows that lost a conflict, rows that wait, and for how long.

`upkeep` carries out people's decisions.
"""
