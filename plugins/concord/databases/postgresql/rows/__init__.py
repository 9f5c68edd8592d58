"""How rows travel: their shape, which of them a link has not sent, where they are staged.

Nothing is written to users' tables here.
"""
