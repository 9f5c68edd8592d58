"""One transmission of one link, step by step. It imports neither Spark nor a database: what they do is handed in."""
