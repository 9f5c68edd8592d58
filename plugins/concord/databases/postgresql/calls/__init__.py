"""Procedure calls that travel in place of the rows which they change: the publisher's marks, and who may write them."""
