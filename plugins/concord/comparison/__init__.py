"""Two sites laid side by side: which keys differ, and which rows a repair writes.

It imports neither Spark nor a database: these are handed in.
"""
