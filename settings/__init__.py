"""What a stack may ask for: typed sections of its configuration, checked all at once."""
