"""What an installed wheel does, with nothing but its own requirements; slow, run by `make test-package`."""
