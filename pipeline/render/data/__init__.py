"""What pages and scripts compute with: the tables in the form that a browser reads."""
