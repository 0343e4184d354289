"""The transports, against servers that send bytes as they please."""
