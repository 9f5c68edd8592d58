"""How sites name one rule alike. `tests/link/constraints` holds the tests of the rules themselves."""
