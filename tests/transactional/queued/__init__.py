"""Queued updating beside its conflicts: the subscriber that is copied anew, and versions that people see."""
