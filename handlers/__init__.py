"""Lambda entries: event in, dict out; no logic."""
