"""What a student runs before handing in: cells and visible tests, in one process."""
