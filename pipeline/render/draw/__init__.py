"""Pictures: plots and previews."""
