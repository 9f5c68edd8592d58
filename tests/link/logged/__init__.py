"""The log tells what users change; no trigger stands anywhere."""
