"""Errors of an embedded server."""


class ServerError(RuntimeError):
    """An embedded PostgreSQL server could not be created or started."""
