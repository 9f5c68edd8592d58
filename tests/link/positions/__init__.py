"""Which changes a link carries: each, once, and nothing at rest."""
