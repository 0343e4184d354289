import os

# The package needs awscrt for one checksum only. botocore would also sign with it, and differently from the signatures
# that are tested. botocore reads the variable when it is imported, so it must be set before every such import.
os.environ.setdefault("BOTO_DISABLE_CRT", "true")
