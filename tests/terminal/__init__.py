"""`python -m concord`, typed at a terminal: what it prints, how it exits, and transcripts of documents."""
