"""Random lives of copies in memory, by the product's own functions, held to an oracle that knows none of them."""
