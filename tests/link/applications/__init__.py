"""Whole applications are loaded, edited at both sites, and end equal: a shop, a trading company, 60 tables."""
