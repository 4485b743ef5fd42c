"""What sees and hears: towers of vision and audio, what joins them to the text, how many tokens an input becomes."""
