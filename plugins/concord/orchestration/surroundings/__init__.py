"""The surroundings of a process of Airflow's or a person's terminal: connections, configuration, a person who
waits.

Nothing here starts a run.
"""
