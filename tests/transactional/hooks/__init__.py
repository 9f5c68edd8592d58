"""Functions of somebody else's see every operation before the subscriber replays it."""
