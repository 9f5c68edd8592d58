"""How fast a link is, measured beside the fastest thing that one can write by hand."""
