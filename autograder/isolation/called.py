"""The end in the sandbox that calls a function of the course's on what somebody handed in.

What crosses is bytes: files on the way in, lines of text on the way out. Everything here runs
beside the student's code and can be changed by it; nothing depends on that.
"""

import importlib
import json
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder.isolation import scratch

HEAD = struct.Struct("!I")  # bytes of what is asked
ANSWER = struct.Struct("!cI")  # the kind of an answer, and its bytes
LINES, REFUSED = b"L", b"R"  # what came out; or a sentence on why nothing did
ENTRY, GIVEN = "entry", "given"  # folders of what was handed in, and of what everybody gets
NO_MEMORY = "can't allocate memory"  # how libraries say it that raise another error
MOST_WORDS = 400  # characters of that sentence


def question(asked: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """What `serve` reads.

    Args:
        asked: `module` and `function`, and the function's `arguments`.
        files: by their place below the folder that the function is given.
    """
    sizes = [(name, len(content)) for name, content in files.items()]
    head = json.dumps({**asked, "sizes": sizes}).encode()
    return b"".join([HEAD.pack(len(head)), head, *files.values()])


def warm(modules: Sequence[str], watched: Sequence[str] = ()) -> None:
    """Import what can be imported, before anything is forked; the rest `serve` finds."""
    del watched
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)


def serve(line: socket.socket) -> None:
    """Lay out the files, call the function, send back its lines or why there are none."""
    with line, line.makefile("rb") as stream:
        (size,) = HEAD.unpack(stream.read(HEAD.size))
        asked = json.loads(stream.read(size))
        home = Path(scratch.HOME)
        for name, length in asked["sizes"]:
            path = home / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(stream.read(length))
        kind, words = _called(asked, home)
        body = words.encode("utf-8", "replace")
        line.sendall(ANSWER.pack(kind, len(body)) + body)


def _called(asked: Mapping[str, Any], home: Path) -> tuple[bytes, str]:
    try:
        module = importlib.import_module(asked["module"])
        function: Callable[..., Sequence[str]] = getattr(module, asked["function"])
        said = function(home, **asked["arguments"])
        return LINES, "\n".join(one.replace("\n", " ") for one in said)
    except ValueError as error:  # how the course's modules refuse
        return REFUSED, _sentence(error, home)
    except Exception as error:  # noqa: BLE001  (whatever the student's code raises)
        if isinstance(error, MemoryError) or NO_MEMORY in str(error):
            return REFUSED, "it needs more memory than there is; make it smaller"
        return REFUSED, f"{type(error).__name__}: {_sentence(error, home)}"


def _sentence(error: Exception, home: Path) -> str:
    """What an error says, in one line, with files as they were handed in."""
    text = str(error).replace(f"{home / ENTRY}/", "").replace(f"{home / ENTRY}", "the entry")
    return " ".join(text.split())[:MOST_WORDS]
