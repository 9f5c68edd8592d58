"""One transmission, as far as neither Spark nor a database takes part."""
