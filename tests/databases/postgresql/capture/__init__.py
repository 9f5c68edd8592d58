"""Which rows users have changed, and what a row was before."""
