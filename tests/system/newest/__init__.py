"""The newest boto3 that the package index serves, in an environment without aioboto3; run by `make test-newest`."""
