"""Many problems at once, solved by one native call."""
