"""A small trainer for the jobs to run, and a plot of what they learned."""
