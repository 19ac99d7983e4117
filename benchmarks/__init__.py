"""What the performance numbers in the README are measured by; nothing here judges or fails."""
