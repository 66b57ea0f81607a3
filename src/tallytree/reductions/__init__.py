"""Models that answer for other models, and the way back from their labellings."""
