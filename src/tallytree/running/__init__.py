"""Plans at work: messages passed with the scores of a model."""
