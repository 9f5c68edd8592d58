"""How long sentences and paragraphs are."""
