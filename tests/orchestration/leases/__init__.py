"""Leases: who holds one, and runs that wait for it in Airflow's triggerer."""
