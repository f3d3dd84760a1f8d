"""A tiny course, and a class that tries everything against it: to cheat, to stop it, to read it."""
