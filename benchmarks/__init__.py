"""The benchmarks, which measure the costs of the product; `make bench` runs them."""
