"""The refusals and notices at a site before a link runs, and the owners of its objects."""
