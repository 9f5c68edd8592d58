"""Wheel, image, compose and installation, as an operator meets them."""
