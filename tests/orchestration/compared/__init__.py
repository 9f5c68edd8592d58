"""Comparisons of replications through Airflow and at a terminal."""
