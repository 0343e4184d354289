"""HTTP/1.1 to one server, as little of it as the direct engine needs: requests that are signed already, answers."""
