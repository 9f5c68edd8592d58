"""The demo: two PostgreSQL sites with real flights, edited by their users and kept equal by Concord."""
