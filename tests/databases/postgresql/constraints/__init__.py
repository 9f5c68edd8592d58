"""How sites name one rule alike. What rules do stands in `tests/link/constraints`."""
