"""A link that would take too much away, or goes round in circles, waits for a person."""
