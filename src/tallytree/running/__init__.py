"""Running plans: messages passed with the scores of a model."""
