"""Drivers, connections and sites die at every point; the next run ends right."""
