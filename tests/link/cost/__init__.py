"""How much a link reads and asks, and how it says how far it is."""
