import os

# The package needs awscrt for one checksum only. If awscrt is installed, botocore signs with it too, and its signatures
# differ from the tested ones. The variable prevents that. It must be set before any import of botocore, which reads it
# then.
os.environ.setdefault("BOTO_DISABLE_CRT", "true")
