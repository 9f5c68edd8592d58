"""Links, comparisons, snapshots and first loads as applications of Spark, and their sessions.

Spark's own steps stand in `steps`. No rule is decided here.
"""
