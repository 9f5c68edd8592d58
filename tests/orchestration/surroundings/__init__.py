"""Connections and processes, as a task or a terminal meets them."""
