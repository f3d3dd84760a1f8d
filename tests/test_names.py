"""Names as they are written down: clean wherever they stand, and never two of them the same."""

import io
import logging
import os
import random
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

import nbgrader
import pytest
from bs4 import BeautifulSoup
from jinja2 import Environment, FileSystemLoader

from autograder.common.names import (
    LONGEST,
    clean_log,
    earlier,
    link,
    plain,
    readable,
    say,
    shown,
    visible,
)
from tests.hostile.pages import FOLDERS

ODD = ["\\", "\\x", "\\\\xfc", "\\#", "\ud800", "\U000e0041"]
ORDINARY = [
    "ada",
    "Zoë",
    "O'Neill, J.",
    "anna & bob",
    "a+b=c?!;[1]#2%20{x}$y",
    "x" * LONGEST,
    "李雷",
    "山田\u3000太郎",
    "Zoe\u0308",
    "ที่",
    "जगत्",
    "क्\u200dष",
    "می‌خواهم",
    "a-b_c@d.org",
]


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_name_stays_as_it_is(name: str):
    assert plain(name) == name == readable(name)


@pytest.mark.parametrize(
    ("name", "in_tables"),
    [
        ("DOMAIN\\user", r"DOMAIN\x5cuser"),
        ('Jo "J" Ng', r"Jo \x22J\x22 Ng"),
        ("<b>&lt;`", r"\x3cb\x3e\x26lt;\x60"),
    ],
)
def test_what_can_be_seen_is_escaped_in_tables_and_not_where_people_read(name: str, in_tables: str):
    assert plain(name) == in_tables
    assert readable(in_tables) == name == earlier(name)


@pytest.mark.parametrize(
    "name",
    [
        *(f"bob{sign}" for sign in "\u3164\u2800\ufe0f\u034f\u00a0\u115f\uffa0\u200c\u200d\u3000 "),
        *(f"bo{sign}b" for sign in "\u00a0\u2007\u200d\u3000\U000e0100"),
        *(" bob", "    Points Possible", "bob  b"),
    ],
)
def test_no_name_looks_like_another(name: str):
    letters = plain(name)
    assert name != letters == letters.strip() and "  " not in letters
    assert letters.isprintable() and letters.isascii()
    assert readable(letters) == letters


@pytest.mark.parametrize(
    "name", [*FOLDERS.values(), "O'Brien", 'a";alert(1);"', "</script>", "a\\"]
)
def test_formgraders_pages_have_a_name_as_text_alone(name: str):
    folder = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
    environment = Environment(loader=FileSystemLoader(folder))  # as formgrader makes it
    for page in ("manage_students_assignments.tpl", "manage_students_notebook_submissions.tpl"):
        template = environment.get_template(page)
        pages = [template.render(student_id=id, base_url="/") for id in ("ada", plain(name))]
        ada, page = (BeautifulSoup(text, "html.parser") for text in pages)
        assert [tag.name for tag in page.find_all()] == [tag.name for tag in ada.find_all()]
        assert [sorted(tag.attrs) for tag in page("a")] == [sorted(tag.attrs) for tag in ada("a")]
        scripts = [tag.text for tag in page("script") if "student_id" in tag.text]
        inside = r'[^"\\\n<]|\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|#)'
        assert all(re.match(rf'\s*var student_id = "({inside})*";\n', text) for text in scripts)
        assert scripts and plain(name) in page.text


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
    parts += ["\u3164", "\u00a0", "\u200d", "می", "\u3000", "山", "\\x20", "\\u3164"]
    parts += ['"', "<", ">", "&", "`", "\\x22", "\\x26lt", "\\x5c", "lt;", "'", " "]
    parts += ["\\x1b", "\\xfc", "\\u202e", "\u0085", "\\x5c", "a" * 50]
    names = {"".join(draw.choices(parts, k=draw.randrange(1, 6))) for _ in range(40_000)}
    names |= {plain(name) for name in names} | set(FOLDERS.values())
    assert len({plain(name) for name in names}) == len(names)
    assert len({readable(plain(name)) for name in names}) == len(names)


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
    log.warning("%s was left out", "x\n[ListApp | INFO] small ada ps1\r\ny")
    assert caplog.messages[0] == "Converting \\x1b[2J\\u202egnp"
    behind = [line for words in caplog.messages for line in words.splitlines()[1:]]
    assert len(behind) == 2 and all(line.startswith("    ") for line in behind)
    assert len(log.filters) == 1
    assert shown("a" * 99) == "a" * 57 + "..." and shown("two\nlines") == "two\\x0alines"
