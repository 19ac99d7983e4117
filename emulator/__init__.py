"""An AWS account in one process on this machine: the embedded default of the demo, and what carries the tests."""
