"""Transactional replication: transactions of one site, replayed at another."""
