"""What the user reads of a run: its lines, its summary, its table and its page."""
