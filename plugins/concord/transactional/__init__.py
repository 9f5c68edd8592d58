"""Transactional replication: the transactions of one site, replayed at another in commit order."""
