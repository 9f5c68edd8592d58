"""Each benchmark, made small."""
