"""Row filters: what enters one arrives, what leaves one goes from there alone."""
