"""A subscriber that keeps every version of a row, and changes none."""
