"""What is known before any model is: tables and their columns, facts with their sources, the arguments of a scenario."""
