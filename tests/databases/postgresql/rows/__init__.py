"""Filters in SQL, staging, and the announcements of users' commits."""
