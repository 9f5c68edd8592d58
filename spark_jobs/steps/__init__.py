"""Spark's steps of a job, DataFrame by DataFrame, one step a file. No job begins here."""
