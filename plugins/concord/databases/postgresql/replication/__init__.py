"""A replication's two ends: the publisher that is read, and the subscriber that replays. Their needs are made here."""
