"""The way through S3 Batch Operations: manifests and jobs that compute checksums, and what their reports say."""
