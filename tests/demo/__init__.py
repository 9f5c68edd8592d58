"""The demo, its page and its proof."""
