"""Let `python -m auditor` run the command line."""

import sys

from auditor.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
