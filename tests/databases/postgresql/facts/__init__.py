"""Sessions, rights, casts, triggers and functions of others, as PostgreSQL has them."""
