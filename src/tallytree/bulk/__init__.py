"""Many questions at once, answered by one native call."""
