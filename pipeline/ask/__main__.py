"""`python -m vram_almanac`."""

import sys

from .command import main

sys.exit(main())
