"""Ledgers: one suite for every kind, and what only one kind can do."""
