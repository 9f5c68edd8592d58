"""One database, one package, over one dialect contract; SQL is written nowhere else."""
