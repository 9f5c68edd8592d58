"""What Spark does for a job, DataFrame by DataFrame, one step a file. What is to be done is decided elsewhere."""
