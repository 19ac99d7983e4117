"""`python -m submitter`, and the console script `submitter`."""

import gc

# Imports and AWS's service models make a hundred thousand objects that stay, and looking through them for garbage again
# and again is a fifth of what a short command takes.
gc.set_threshold(200_000)

from submitter.cli.main import main  # noqa: E402 - the imports are what it is about

if __name__ == "__main__":
    main()
