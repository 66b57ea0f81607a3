"""The objects of the paper, to look at and to teach with."""
