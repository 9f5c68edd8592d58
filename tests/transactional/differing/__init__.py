"""A replication whose sites differ unseen: rows that were altered, a publisher that was restored, levels made up."""
