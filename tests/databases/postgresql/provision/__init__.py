"""A site is made ready, checked, printed, and taken down."""
