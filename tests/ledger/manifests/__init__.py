"""Checksum manifests: reading and writing of each form, and moving digests between files and ledgers."""
