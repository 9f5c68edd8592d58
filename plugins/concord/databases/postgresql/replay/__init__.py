"""Replay at the subscriber: the operations of an entry, one by one or by set, in one transaction with its level."""
