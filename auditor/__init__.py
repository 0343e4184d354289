import os

__version__ = "0.1.0"

# awscrt is here for one checksum. botocore would sign with it as well, in another way than the one that is tested.
os.environ.setdefault("BOTO_DISABLE_CRT", "true")
