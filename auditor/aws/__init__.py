import os

# The package needs awscrt for one checksum only. If awscrt is installed, botocore signs with it too, and its signatures
# differ from the tested ones. This variable prevents that. botocore reads it while it is imported, so it is set here.
os.environ.setdefault("BOTO_DISABLE_CRT", "true")
