"""The rules that decide, as pure functions, many over random values."""
