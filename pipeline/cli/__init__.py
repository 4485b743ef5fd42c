"""What each command does and says."""
