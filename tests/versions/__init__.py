"""Row versions, positions, and what two versions are to each other."""
