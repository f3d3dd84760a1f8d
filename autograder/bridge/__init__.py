"""Values, tensors, modules and errors between the process of the tests and that of the answers.

What goes over the line is written down in `protocol.py`. From below: `wire` (bytes and plain
values), `codecs` (what handles the values of a library that need not be there), `arrays`,
`library`, `records` and `tensors` (values by kind), `outgoing` and `incoming` (messages), `asking`
and `answering` (requests), `peer` (one end), `session` and `student` (the end of the tests, and
that of an answer).
"""

STUDENT = "autograder.bridge.student"  # the module that runs in a student's process
