"""Sites that have no common history get one, or get it back."""
