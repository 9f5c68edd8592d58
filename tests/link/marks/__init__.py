"""The application keeps the marks of its changes on the row; no trigger stands anywhere."""
