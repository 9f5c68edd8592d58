"""What one job is told and reports."""
