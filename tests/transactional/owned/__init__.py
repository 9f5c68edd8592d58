"""Where both sites of a replication write, the users of each change only the rows that their site owns."""
