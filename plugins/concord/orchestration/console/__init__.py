"""Concord's additions to Airflow itself: its plugin, and its entry among the providers.

No run is made here.
"""
