"""The objects of the paper, for inspection and teaching."""
