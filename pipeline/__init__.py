"""The press: turns what the Hub says and what the book knows into published tables and pages."""
