"""What decoders are made of: attention, experts, mixers with a state, windows, contexts."""
