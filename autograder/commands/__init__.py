"""The commands, a module for each floor that has some. Each imports what it needs and no more."""
