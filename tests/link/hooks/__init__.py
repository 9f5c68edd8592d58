"""Functions of somebody else's see every row before it is written: they audit, change and refuse."""
