"""What the tasks of a DAG do: take the lease, run a link, record what came of it.

No DAG is built here.
"""
