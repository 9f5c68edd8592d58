"""Documents that programs write, and documents that name what is there."""
