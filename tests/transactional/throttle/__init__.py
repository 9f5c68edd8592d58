"""A throttled replication: how fast it replays, in which hours, and that its rests hold nothing."""
