"""The package as Lambda runs it: the real runtime client on python3.13, the Runtime API and the Invoke API here."""
