"""What people and logs are told."""
