"""Tables of every shape and type, hostile texts, and columns that change."""
