"""Build the deployment package, which contains none of these modules."""
