"""The command line as `python -m steelyard.cli`."""

import sys

from steelyard.cli.entry import main

sys.exit(main())
