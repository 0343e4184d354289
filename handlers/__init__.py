"""The entry points of the Lambda functions. They take an event and return a dict; the logic is in auditor.lambdas."""
