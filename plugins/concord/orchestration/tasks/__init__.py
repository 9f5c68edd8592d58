"""The acts of a DAG's tasks: take the lease, run a link, record what came of it.

No DAG is built here.
"""
