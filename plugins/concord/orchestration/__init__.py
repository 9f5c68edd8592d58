"""Airflow's side of Concord: connections become sites, synchronizations become DAGs, links become Spark jobs."""
