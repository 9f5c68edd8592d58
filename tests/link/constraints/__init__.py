"""Unique values and foreign keys hold at every site after every link."""
