"""Any number of sites, which come and go."""
