"""Java, and the end of processes."""
