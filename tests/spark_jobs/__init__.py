"""Spark's own side: sessions, secrets, workers, and what a step does."""
