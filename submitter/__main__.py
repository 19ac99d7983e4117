"""`python -m submitter`, and the console script `submitter`."""

from submitter.cli.main import main

if __name__ == "__main__":
    main()
