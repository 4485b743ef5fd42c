"""What a page says: models, cards, prose and what they are found by."""
