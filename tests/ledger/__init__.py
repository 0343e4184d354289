"""Ledgers: the suite for every kind, and tests of each kind."""
