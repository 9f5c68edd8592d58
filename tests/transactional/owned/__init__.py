"""Where both sites of a replication write, each has rows and numbers of its own."""
