"""Manifests: what each form reads and writes, and the commands that move digests between files and ledgers."""
