"""The YAML file and what it means: frozen values, each mistake named with the path of its key.

It knows nothing of Airflow.
"""
