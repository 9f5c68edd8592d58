"""What a site keeps for people: rows that lost a conflict, rows that wait, and for how long.

What people decide is carried out in `upkeep`.
"""
