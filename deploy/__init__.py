"""What makes the deployment package; none of it is inside."""
