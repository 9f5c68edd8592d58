"""The DAGs, made, run and asked questions; some under a whole Airflow with its scheduler."""
