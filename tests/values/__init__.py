"""Intervals, schedules, debouncing."""
