"""Tests of whole transmissions between real sites, in folders named for what they show.

A test that holds one room of a database stands in `tests/databases`.
"""
