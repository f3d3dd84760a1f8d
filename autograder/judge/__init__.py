"""One submission in, one result out: reading it, rules, the passes over its tests, diagnosis."""
