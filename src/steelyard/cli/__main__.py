"""The command line as `python -m steelyard.cli`."""

import sys

from steelyard.cli.main import main

sys.exit(main())
