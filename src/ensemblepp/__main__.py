"""`python -m ensemblepp`, the same as the command `ensemblepp`."""

import sys

from ensemblepp.warm_start import ask

status = ask(sys.argv[1:])
if status is None:
    # only here: what it imports is what a warm start saves
    from ensemblepp.cli import main

    status = main()
sys.exit(status)
