"""Two processes: the student's code runs in a sandbox, the tests in a trusted process."""
