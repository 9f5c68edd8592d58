"""Replications both ways through Airflow and at a terminal."""
