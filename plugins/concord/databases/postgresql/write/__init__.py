"""The write of one table: staged rows are judged under lock, logged and written.

The transaction of all tables stands in `transaction`.
"""
