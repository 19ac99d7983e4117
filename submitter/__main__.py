"""`python -m submitter`, and the console script `submitter`."""

import sys


def main() -> None:
    """Run the command line, which is imported here so that an interruption while it is imported is none of Python's."""
    try:
        from submitter.cli.main import main as run  # noqa: PLC0415 - as above

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
