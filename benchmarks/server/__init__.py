"""A stub of S3 for measuring: computed objects, TLS, and as much latency, refusal and narrowness as is set."""
