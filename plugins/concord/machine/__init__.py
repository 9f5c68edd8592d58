"""The machine that a process runs on: its cache, its environment, its Java, the signals that end it.

Nothing here knows of a database.
"""
