"""The words that people and logs get."""
