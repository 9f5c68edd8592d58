"""Two sites keep one table differently."""
