"""Tests of PostgreSQL's rooms, each in the room that it holds, on a real server."""
