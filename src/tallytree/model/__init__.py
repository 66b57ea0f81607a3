"""Models: variables with their states, and factors over them."""
