"""Names as they are written down: clean wherever they stand, and never two of them the same."""

import io
import logging
import os
import random
from urllib.parse import unquote_to_bytes

import pytest

from autograder.names import LONGEST, clean_log, link, plain, say, shown, visible
from tests.hostile.pages import FOLDERS

ODD = ["\\", "\\x", "\\\\xfc", "\\#", "\ud800", "\U000e0041"]
ORDINARY = [
    "ada",
    "Zoë",
    "O'Neill, J.",
    "DOMAIN\\user",
    "x" * LONGEST,
    "李雷",
    "می‌خواهم",
    "a-b_c@d.org",
]


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_name_stays_as_it_is(name: str):
    assert plain(name) == name


@pytest.mark.parametrize(
    "name", [*FOLDERS.values(), "\\", "\\x", "\\\\xfc", "\ud800", "\U000e0041"]
)
def test_a_plain_name_is_one_clean_line_of_a_size_that_tables_hold(name: str):
    text = plain(name)
    text.encode("utf-8")
    assert text and len(text) <= LONGEST
    assert visible(text) == text and "\n" not in text and "\t" not in text


def test_two_names_never_become_one():
    draw = random.Random(5)
    parts = [
        "\\",
        "x",
        "u",
        "U",
        "#",
        "f",
        "c",
        "0",
        "1",
        "b",
        "\x1b",
        "\u202e",
        "\udcfc",
        "ü",
        "\n",
    ]
    parts += ["\\x1b", "\\xfc", "\\u202e", "\u0085", "\\x5c", "a" * 50]
    names = {"".join(draw.choices(parts, k=draw.randrange(1, 6))) for _ in range(40_000)}
    names |= {plain(name) for name in names} | set(FOLDERS.values())
    assert len({plain(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", FOLDERS.values())
def test_a_link_leads_to_the_file_of_that_name(name: str):
    path = link("..", name, "page.html")
    assert unquote_to_bytes(path) == b"../" + os.fsencode(name) + b"/page.html"
    assert set(path) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%/._-~")


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_whatever_is_said_commands_no_terminal(encoding: str):
    said = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    say("".join(FOLDERS.values()) + "\r\b\x07…\n\tnext", said)
    said.seek(0)
    text = said.read()
    assert not set(text) & set("\x1b\r\b\x07\x9b\u202e\x0b") and "\n\tnext" in text


def test_a_log_commands_no_terminal_whoever_writes_it(caplog: pytest.LogCaptureFixture):
    log = logging.getLogger("of nbgrader")
    clean_log(log)
    clean_log(log)
    log.warning("Converting %s", "\x1b[2J\u202egnp")
    assert caplog.messages == ["Converting \\x1b[2J\\u202egnp"]
    assert len(log.filters) == 1
    assert shown("a" * 99) == "a" * 57 + "..." and shown("two\nlines") == "two\\x0alines"
