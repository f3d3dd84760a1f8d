"""The protocol between the process of the tests and that of an answer, in one place.

**A frame** (`wire.py`) is, in this order: eight bytes, with the length of the tree and the number
of buffers (two unsigned integers of 32 bits, big-endian); the length of each buffer (64 bits each);
the tree, JSON in ASCII; the buffers. Limits are looked at before anything is built: `MAX_TREE`,
`MAX_BUFFERS`, `MAX_BYTES`, `MAX_NODES` and `MAX_DEPTH` in `wire.py`, and `MAX_RECEIVED` in
`line.py` for all that an answer sends during one test. Each buffer, and each tensor, is used once.

**A message** is a frame whose tree is an object. It is a request if it has `op`, else the reply to
the last request that is still open. Before it replies an end may ask in turn, `MAX_NESTED` deep.

Requests have `op`, `p` (its plain arguments) and `v` (the node of its values):

| `op`       | `p`               | `v`                      | asks for                         |
| ---------- | ----------------- | ------------------------ | -------------------------------- |
| `ask`      | service           | its arguments            | what a named service gives       |
| `call`     | number, name      | (positional, named)      | a call of an object or a method  |
| `get`      | number, name      | none                     | an attribute                     |
| `put`      | number, name      | one value                | an attribute to be set           |
| `remove`   | number, name      | none                     | an attribute to be deleted       |
| `copy`     | number, how       | none                     | a copy, which stays there        |
| `contents` | number            | none                     | contents as a plain value        |
| `vjp`      | number of a graph | gradients of its results | gradients of what it was handed  |

Services of a student's end are `run`, `run_all`, `name`, `names`, `set`, `delete`, `put`, `notes`,
`watch` and `seen` (`student.py`); the trusted end has none.

A student's end may send a message with `ran` at any time, which is neither request nor reply: the
name of a module of the student's own that is about to run, and its text in a buffer, if it has one.

A reply has `r`, the node of the result, or `e`, an exception: its kinds, text, arguments, line and
cell, or `yours` with the number of one that came from the other end. Further keys:

| key              | in               | what it tells                                              |
| ---------------- | ---------------- | ---------------------------------------------------------- |
| `x`              | both             | tensors: dtype, shape, strides, buffer, flags, gradient    |
| `t`              | both             | what changed in modules that both ends know (`in_step.py`) |
| `o`              | both             | what changed in records that both ends know (`records.py`) |
| `drop`           | both             | numbers of objects that nobody there uses any more         |
| `kinds`, `lacks` | request, reply   | classes of the instructor's; those that are not there      |
| `plain`, `known` | tests' requests  | a value is due, or an object of the instructor's classes   |
| `objects`        | tests' requests  | objects are due: in all places, or in these of a result    |
| `rng`, `used`    | request, reply   | states of random numbers; whose were drawn (`rng.py`)      |
| `same`, `own`    | request, reply   | values that both ends hold, and edits (`aliases.py`)       |
| `as`             | answers' replies | results that lie in values of the test (`memory.py`)       |
| `files`, `has`   | tests' requests  | files that are lent (`lent.py`); libraries that are loaded |
| `deep`           | tests' requests  | how deep calls may go, where a test has set that           |
| `input`          | tests' requests  | what the test has in the place of `input` (`typed.py`)     |
| `instead`        | tests' requests  | what it has in functions' places (`instead.py`)            |
| `warn`           | tests' requests  | filters of warnings, for a test that listens (`warned.py`) |
| `loop`           | tests' requests  | that an event loop runs (`awaited.py`)                     |
| `arithmetic`     | tests' requests  | how NumPy's is set by a test                               |
| `logs`, `logged` | request, reply   | levels that a test has set; what was logged (`logged.py`)  |
| `warned`         | answers' replies | what was warned of meanwhile, with lines                   |
| `begins`         | tests' requests  | that a test begins, as a cell of a notebook does           |
| `said`           | answers'         | what was printed: streams and texts (`printed.py`)         |
| `c`              | reply            | what the call changed of what it was handed: place, node   |
| `late`           | answers' replies | changes of what earlier calls shared (`late_changes.py`)   |
| `w`              | tests' replies   | what it changed of values that were handed back            |
| `graph`          | reply            | the number of the result's graph, for `vjp`                |

**A node** is null, a boolean, a number, a text, or a list that begins with a tag. `TAGS` says which
there are. Values that can be changed, arrays and tensors get places, counted from 0 in the order in
which they are met; a reply counts on from its request.

Both ends are processes of one grader, forked from the same files, so `PROTOCOL` is stated and not
sent. It goes up with every change of what is written above.
"""

from types import MappingProxyType

PROTOCOL = 8
MAX_NESTED = 400  # calls into each other
FRAMES = 30  # of ours, at most, that one such call puts on the stack
LIBRARIES = frozenset(("numpy", "torch"))  # whose values cross as such
TAGS = MappingProxyType(
    {
        # plain values (wire.py)
        "R": "a value that was met before, by its place",
        "T": "a tuple",
        "L": "a list",
        "D": "a dict: keys and values in turn",
        "S": "a set",
        "CN": "a Counter",
        "OD": "an OrderedDict",
        "DD": "a defaultdict: its factory, or true for the one it had, then as a dict",
        "DQ": "a deque: its greatest length, then its parts",
        "BA": "a bytearray, in a buffer",
        "B": "bytes, in a buffer",
        "I": "an integer of more than 64 bits, hexadecimal",
        "C": "a complex number",
        "FS": "a frozenset",
        "G": "a range",
        "SL": "a slice",
        "E": "the Ellipsis",
        "NI": "NotImplemented",
        "NA": "a number that is none, if it is the one of math (0) or of NumPy (1)",
        "FR": "a Fraction",
        "DC": "a Decimal, as text",
        "O": "a record of the grader's; refused from an answer",
        # objects, and names that both ends know (outgoing.py and incoming.py)
        "H": "an object of the sender's: its number and what a stand-in needs (describing.py)",
        "ER": "an error of the test's, for an `__exit__` of the answer's (thrown.py)",
        "Y": "an object of the receiver's, by its number",
        "U": "what was handed over in a call under way: level, place",
        "W": "what the receiver has handed back in the call that this answers",
        "PUB": "a public function or class, by its name",
        # of NumPy (arrays.py)
        "A": "an array: dtype, shape, buffer, letters for what it is besides",
        "AV": "a view of an array that was handed over",
        "AS": "a number of NumPy's",
        "DT": "a dtype of NumPy's",
        # of Python's library (library.py)
        "V": "a value of a class of the library's: the class's name, parts",
        "NT": "a named tuple: name, names of its fields, parts",
        # objects of the instructor's classes (records.py)
        "RC": "a group of objects that refer to each other",
        "RR": "one that both ends know",
        "RE": "a member of an enumeration",
        "RN": "a named tuple of the instructor's",
        # of torch (tensors.py)
        "X": "a tensor, by its entry in the message",
        "PS": "a parameter of a module that both ends know: side, number, name",
        "LP": "a parameter that stands in no module",
        "TD": "a dtype of torch's",
        "DV": "a device",
        "TS": "a torch.Size",
        "GEN": "a generator of random numbers: its state, in a buffer",
    }
)
