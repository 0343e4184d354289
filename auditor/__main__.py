"""Run the command line by `python -m auditor`."""

import sys

from auditor.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
