"""From the text source to the instructor's notebook and the release; known answers, mutants."""
