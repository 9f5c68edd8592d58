"""The YAML file: what it means, and how mistakes are named."""
