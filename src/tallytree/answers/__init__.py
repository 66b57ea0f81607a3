"""What the last table answers: profiles, distributions, rankings, solutions and their certificates."""
