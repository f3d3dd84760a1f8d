"""How what a student hands in is read, matched to the release and put in order."""
