"""The measured clients, one module each: ours, the articles', and bare ones that show the possible minimum."""
