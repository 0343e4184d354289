"""What the product costs, measured; run by hand and by `make bench-*`."""
