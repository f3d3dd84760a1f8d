"""How names and texts of a submission are written down: on a terminal, in a table, in a link.

A student's folder may have any name that a file system holds: bytes that are no UTF-8, line ends,
terminal commands, signs that turn the reading direction, markup. Files go under that very name; the
gradebook has `plain`, which is an ordinary text and another one for each name; people and learning
management systems read `readable`, where only what cannot be seen is written in other signs.
"""

import hashlib
import logging
import os
import re
import select
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

LONGEST = 120  # characters of a plain name; nbgrader's tables hold 128
SHOWN = 60  # characters of a file's name in a sentence
UNSEEN = (
    "\x00-\x1f\x7f-\x9f"  # terminal commands, line ends
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the reading direction
    "\u00ad\u200b\u2028\u2029\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # nothing to be seen
    "\ud800-\udfff"  # no file in UTF-8 can hold them
)
LIKE_AN_ESCAPE = r"x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|\#"
# What formgrader must not find in a name: it puts one into its pages as it is, as text, and between
# double quotes in an address and in a script. An apostrophe is harmless in all three.
MARKUP = r"\\\"<>`]|&(?=[#A-Za-z])"
BLANK = (  # like a space, or like nothing
    "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3164\uffa0\u115f\u1160"
    "\u034f\u17b4\u17b5\u180b-\u180f\u206a-\u206f\ufe00-\ufe0f\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
JOINED = "\u0600-\u109f\u1780-\u18af"  # scripts in which a joiner can be seen between letters
EAST = "\u3005-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"  # which have a wide space between names
# What lets one name look like another: signs that leave no mark, spaces where none are looked for.
ALIKE = (
    f"[{BLANK}]|(?<![{JOINED}])[\u200c\u200d]|[\u200c\u200d](?![{JOINED}])"
    f"|(?<![{EAST}])\u3000|\u3000(?![{EAST}])|(?<![^ ]) | \\Z"
)
ESCAPED = re.compile(f"[{UNSEEN}{MARKUP}|{ALIKE}")
EARLIER = re.compile(rf"[{UNSEEN}]|\\(?={LIKE_AN_ESCAPE})")
VISIBLE = re.compile(rf"\\x(?:(22|26|3c|3e|60)|5c(?!{LIKE_AN_ESCAPE}))")
CUT = re.compile(r"\\(x[0-9a-f]?|u[0-9a-f]{0,3}|U[0-9a-f]{0,7})?$")  # the begin of an escape
SURROGATE = re.compile("[\ud800-\udfff]")
CONTROL = re.compile(f"[{UNSEEN}]")
LINE = "\n\t"  # what a text for people may hold


def plain(name: str) -> str:
    """A student's name as the gradebook has it; two names never become one.

    Bytes that are no UTF-8 become \\xfc, unseen signs \\x1b or \\u202e, markup \\x3c, a space at an
    end or after another \\x20; a long name ends in a hash.
    """
    return _written(name, ESCAPED)


def composed(name: str) -> str:
    """A name as it is compared with another source's: one may write é as one sign, one as two.

    It says who is meant; two folders stay two.
    """
    return unicodedata.normalize("NFC", name)


def alike(known: Iterable[str]) -> dict[str, str]:
    """These names by what they are composed to, where one alone is composed to it."""
    found: dict[str, list[str]] = {}
    for name in known:
        found.setdefault(composed(name), []).append(name)
    return {what: names[0] for what, names in found.items() if len(names) == 1}


def earlier(name: str) -> str:
    """As `plain` once wrote it: gradebooks have it where markup or a backslash is in a name."""
    return _written(name, EARLIER)


def is_text(name: str) -> bool:
    """Whether a name can be written in UTF-8, as gradebooks and pages are."""
    return not SURROGATE.search(name)


def readable(text: str) -> str:
    """A plain name with everything that can be seen as it is; two never become one here either."""
    return VISIBLE.sub(lambda found: chr(int(found[1] or "5c", 16)), text)


def _written(name: str, escaped: re.Pattern[str]) -> str:
    text = escaped.sub(_escape, name)
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return f"{CUT.sub('', text[: LONGEST - len(digest) - 2])}\\#{digest}"


def visible(text: str) -> str:
    """A text that only says something: nothing in it commands a terminal or hides."""
    return CONTROL.sub(lambda found: found[0] if found[0] in LINE else _escape(found), text)


def shown(name: str) -> str:
    """A file's name in a sentence: one short line."""
    clean = CONTROL.sub(_escape, name)
    return clean if len(clean) <= SHOWN else clean[: SHOWN - 3] + "..."


def link(*names: str) -> str:
    """A relative link to the file under these folders, whatever their names are."""
    return "/".join(quote(os.fsencode(name), safe="") for name in names)


def say(text: str, file: TextIO | None = None) -> None:
    """Print a text that may repeat what students wrote or how their folders are named.

    If nobody reads it any more, as behind `| head -1`, the work goes on in silence.
    """
    stream = file or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    safe = visible(text).encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(safe, file=stream, flush=True)
    except BrokenPipeError:
        silence(stream)


def silence(stream: TextIO) -> None:
    """Let what is written to a stream go nowhere, also what it still holds."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def open_streams() -> None:
    """Where a standard stream was closed, as by `>&-`, let what is written there go nowhere.

    Else the next file that is opened gets its number, and what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:  # its number may be another file's by now
            mode = "w" if number else "r"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def is_read(stream: TextIO) -> bool:
    """Whether what is written to a stream still has a reader, as far as the system can tell."""
    if not hasattr(select, "poll"):
        return False
    asked = select.poll()
    asked.register(stream.fileno(), 0)
    return not any(events & (select.POLLERR | select.POLLHUP) for _, events in asked.poll(0))


def clean_log(log: logging.Logger) -> None:
    """Have a log say nothing that commands a terminal, whoever writes it."""
    if _visible not in log.filters:
        log.addFilter(_visible)


def _visible(record: logging.LogRecord) -> bool:
    # a name may hold the end of a line: what is behind it is not to look like another one
    record.msg, record.args = visible(record.getMessage()).replace("\n", "\n    "), ()
    return True


def _escape(found: re.Match[str]) -> str:
    sign = ord(found[0])
    if 0xDC80 <= sign <= 0xDCFF:
        return f"\\x{sign - 0xDC00:02x}"
    if sign < 0x80:
        return f"\\x{sign:02x}"
    return f"\\u{sign:04x}" if sign < 0x10000 else f"\\U{sign:08x}"
