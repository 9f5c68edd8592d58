"""How DAGs are made from the configuration: one for each synchronization and snapshot, and those beside them.

`tasks` says what their tasks do.
"""
