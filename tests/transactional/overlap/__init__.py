"""One batch is replayed while the next one is read; order, boundaries and the end of a run stay as they are."""
