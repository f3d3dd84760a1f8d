"""Release, grade, feedback and report for a course of notebooks; knows nothing of its subject."""
