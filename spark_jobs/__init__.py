"""HOW, at scale: one transmission as a Spark application, one step a file."""
