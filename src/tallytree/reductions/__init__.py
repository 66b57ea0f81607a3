"""Models that are solved in place of others, and the translation of their labellings."""
