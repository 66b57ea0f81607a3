"""What will be run and what it costs, decided before any score is looked at."""
