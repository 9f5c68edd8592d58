"""Every test, in rooms as the code has them; `tests/given` holds what tests ask for."""
