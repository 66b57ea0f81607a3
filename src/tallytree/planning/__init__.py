"""Plans: what will be run and its cost, decided before any score is used."""
