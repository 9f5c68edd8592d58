"""Tests of what stands between Concord and a database."""
