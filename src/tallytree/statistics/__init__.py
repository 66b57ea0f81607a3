"""Statistics, recipes for them, their combinations, and constraints on their tallies."""
