"""What is refused or named at a site before a link runs, and who owns what there."""
