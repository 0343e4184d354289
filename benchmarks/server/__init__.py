"""A stub of S3 for measurements: computed objects, TLS, and adjustable latency, refusals and bandwidth."""
