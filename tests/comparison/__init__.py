"""Two sites laid side by side, as far as neither Spark nor a database takes part."""
