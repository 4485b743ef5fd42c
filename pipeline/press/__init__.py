"""The build: from a snapshot and the book to tables, their checks, and a release that replaces the last one whole."""
