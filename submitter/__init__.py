"""Submits seeded experiments to the queues of a deployed stack, and watches them."""
