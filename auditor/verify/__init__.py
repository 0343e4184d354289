"""Verifying: objects are read again, and what they hold is compared with what the ledger knows of them."""
