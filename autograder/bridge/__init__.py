"""Values, tensors, modules and errors between the process of the tests and that of the answers."""

STUDENT = "autograder.bridge.student"  # the module that runs in a student's process
