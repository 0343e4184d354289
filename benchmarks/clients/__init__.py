"""What is measured, one module a client: ours, the ways of old, and bare ones that show what is possible."""
