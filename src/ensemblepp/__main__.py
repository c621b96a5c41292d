"""`python -m ensemblepp`, the same as the command `ensemblepp`."""

import sys

from ensemblepp.cli import main

sys.exit(main())
