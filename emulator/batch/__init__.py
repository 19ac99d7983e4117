"""AWS Batch, rebuilt: the control plane as AWS documents it, and a scheduler that really runs the jobs."""
