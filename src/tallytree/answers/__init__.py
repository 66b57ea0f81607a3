"""Answers computed from the last table: profiles, distributions, rankings, solutions and certificates."""
