"""What all floors share: a course and its settings, names, texts of cells, results."""
