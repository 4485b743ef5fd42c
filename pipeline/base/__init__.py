"""What every room needs: failures as sentences, the progress bar, bounds of honest values, reading a published file."""
