"""What is scored: variables with their states, and factors over them."""
