"""What a process of Airflow's or a person's terminal brings along: connections, configuration, a person who waits.

Nothing here starts a run.
"""
