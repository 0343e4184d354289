"""The whole product at work on a bucket with planted problems, on an AWS inside this process."""
