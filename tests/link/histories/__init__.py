"""Random lives of two to four real sites, held to an oracle; and the soak."""
