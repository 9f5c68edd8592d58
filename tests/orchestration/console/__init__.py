"""No test stands here: `tests/orchestration/dags` has an Airflow load the plugin, `tests/deployment` the provider."""
