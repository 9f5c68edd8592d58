"""Row versions, positions, and what two versions of a row are to each other.

No policy stands here.
"""
