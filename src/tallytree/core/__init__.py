"""From a model and its statistics to the profile: one file per stage."""
