"""Many submissions: who and where, journal, gradebook, feedback, report, nbgrader's hooks."""
