"""PostgreSQL 15 to 18: shadow tables kept by triggers, positions that are snapshots."""
