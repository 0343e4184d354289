"""What the tests of the template stand on: its sources read, packaged, and resolved as CloudFormation does."""
