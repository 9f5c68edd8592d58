"""How DAGs are made from the configuration: one for each synchronization and snapshot, and those beside them.

What their tasks do stands in `tasks`.
"""
