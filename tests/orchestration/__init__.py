"""Airflow's side, in a real Airflow."""
