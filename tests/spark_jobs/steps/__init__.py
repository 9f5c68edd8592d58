"""Steps of Spark's, each alone. Steps beside the rules that they must equal stand in `tests/link`."""
