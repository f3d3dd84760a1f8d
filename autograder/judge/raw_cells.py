"""The cells of a notebook as it was handed in, read within bounds.

Whatever the bytes are, reading them ends in cells or in `Unreadable`. Of outputs nothing is read.
"""

import hashlib
import itertools
import json
import re
from typing import Any, NamedTuple

from autograder.judge.parcel import Unreadable
from autograder.judge.script import MAX_NOTES

MAX_DEPTH = 100  # of lists and objects in a notebook's JSON
MAX_CONTAINERS = 1_000_000  # of those together
MAX_PRINTED = 2_000_000  # of those in outputs, which are not read
MAX_CELLS = 2000
MAX_SOURCE = 200_000  # characters of one cell
MAX_TEXT = 2_000_000  # characters of all cells of a notebook
TOKENS = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|[\[{]|[\]}]', re.DOTALL)
OUTPUTS = re.compile(r'"outputs"\s*:\s*(?=\[)')
SIGNS, WRAP = r"[\w/+%=-]", r"[ \t]*+\r?\n[ \t]*+"  # of data such as base64
DATA = re.compile(  # such as a pasted photo, on one line or on many long ones
    rf"(data:[\w/+.;=-]{{0,100}},)"
    rf"(?:{SIGNS}{{1000,}}+|{SIGNS}*+(?=(?:{WRAP}{SIGNS}{{40,}}+){{12}}))"
    rf"(?>(?:{WRAP}{SIGNS}{{40,}}+)*)(?>(?:{WRAP}{SIGNS}++(?=[\"')>]))?)"
)
PROMPT = re.compile(r"\n*+(.*\n)?In \[\d+\]: ")  # on one of the first two lines, as IPython looks
END_OF_DISK = ("\0", "\x1a")  # what is behind a text that a crash, or an old program, has written
SURROGATES = re.compile("[\ud800-\udfff]")


class RawCell(NamedTuple):
    """A cell as it was handed in."""

    source: str
    cell_type: str
    grade_id: str
    id: str
    marks: dict
    tags: tuple[str, ...]
    damage: str  # why its source cannot be used
    cut: str = ""  # what of it was left out
    pictures: tuple[str, ...] = ()  # names of those pasted into it, which are not read
    drawn: str = ""  # a digest of those, and of what was cut; empty if there is neither


def read_cells(content: bytes, name: str) -> tuple[list[RawCell], list[str]]:
    """The cells of a notebook's bytes and what was odd; raises Unreadable."""
    text, notes = _decode(content)
    data = _json(text, name)
    raw = _cell_list(data)
    if raw is None:
        raise Unreadable(f"{name} is not a notebook (it holds no list of cells)")
    if len(raw) > MAX_CELLS:
        raise Unreadable(f"{name} holds {len(raw)} cells; at most {MAX_CELLS} are read")
    cells = [_raw_cell(cell) for cell in raw if isinstance(cell, dict)]
    if _length(cells) > MAX_TEXT:
        cells = [_without_pictures(cell) for cell in cells]
    if _length(cells) > MAX_TEXT:
        raise Unreadable(f"{name} holds more than {MAX_TEXT // 1_000_000} million characters")
    if len(cells) < len(raw):
        notes.append(f"{len(raw) - len(cells)} entries of {name} are no cells and were left out.")
    if any(SURROGATES.search(cell.source) for cell in cells):
        notes.append("Signs that no text can hold (lone surrogates) were replaced by \ufffd.")
        cells = [cell._replace(source=_whole(cell.source)) for cell in cells]
    return cells, notes


def _decode(content: bytes) -> tuple[str, list[str]]:
    """Text in the encoding that the first bytes show; what cannot be read is replaced."""
    encoding = json.detect_encoding(content)
    text = content.decode(encoding, "replace")
    notes = []
    if encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"The notebook was saved as {encoding.upper()}; Jupyter writes UTF-8.")
    if text.endswith(END_OF_DISK):
        text = text.rstrip("".join(END_OF_DISK))
        notes.append("Zero bytes at the notebook's end, as a crash leaves them, were left out.")
    if "\ufffd" in text and "\ufffd".encode(encoding.removesuffix("-sig")) not in content:
        notes.append("The notebook holds bytes that are no UTF-8; they were replaced by \ufffd.")
    return text.removeprefix("\ufeff"), notes


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(_bounded(text, name), parse_int=_number, strict=False)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"{name} is not a notebook (it is no JSON text)") from error


def _bounded(text: str, name: str) -> str:
    """The text without what is in cells' outputs, if the rest is neither too deep nor too large."""
    kept: list[str] = []
    depth = count = printed = done = 0  # the text is kept, or left out, up to `done`
    outputs = -1  # where a list of outputs begins
    outside: int | None = None  # the depth around it, while in one
    for token in TOKENS.finditer(text):
        start = token.start()
        sign = text[start]
        if sign in "[{":
            if start == outputs:
                kept.append(text[done:start])
                outside = depth
            depth += 1
            printed += outside is not None
            count += outside is None
        elif sign in "]}":
            depth -= 1
            if depth == outside:
                done, outside = token.end(), None
                kept.append("[]")
        elif outside is None and (found := OUTPUTS.match(text, start)):
            outputs = found.end()
        too_deep = depth > MAX_DEPTH and outside is None
        if too_deep or count > MAX_CONTAINERS or printed > MAX_PRINTED:
            raise Unreadable(f"{name} is not a notebook (its JSON is nested too deep or too large)")
    return "".join([*kept, text[done:]])


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 20 else 0  # nothing of ours is that large


def _cell_list(data: Any) -> list | None:
    """The cells of format 4, or of format 3 with its worksheets."""
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("cells"), list):
        return data["cells"]
    sheets = data.get("worksheets")
    if not isinstance(sheets, list):
        return None
    lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    return [cell for cells in lists if isinstance(cells, list) for cell in cells] or None


def _raw_cell(cell: dict) -> RawCell:
    metadata = cell.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    marks = metadata.get("nbgrader")
    marks = marks if isinstance(marks, dict) else {}
    tags = metadata.get("tags")
    attached = cell.get("attachments")
    source, damage, cut = _source(cell)
    cell_type = _string(cell.get("cell_type")) or "code"
    return RawCell(
        source=_without_prompts(source) if cell_type == "code" else source,
        cell_type=cell_type,
        grade_id=_string(marks.get("grade_id")),
        id=_string(cell.get("id")),
        marks=marks,
        tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        damage=damage,
        cut=cut,
        pictures=tuple(map(_whole, itertools.islice(attached, MAX_NOTES)))
        if isinstance(attached, dict)
        else (),
        drawn=_digest(attached, cell.get("source") if cut else "") if attached or cut else "",
    )


def _source(cell: dict) -> tuple[str, str, str]:
    """A cell's text, why it cannot be used, and what of it was left out."""
    source = cell.get("source", cell.get("input"))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return "", "its text is damaged (it is neither a text nor a list of lines)", ""
    if len(source) <= MAX_SOURCE:
        return source, "", ""
    too_long = f"it is longer than {MAX_SOURCE:,} characters"
    without = DATA.sub(r"\1", source) if cell.get("cell_type") != "code" else source
    if len(without) > MAX_SOURCE:
        return "", too_long, ""
    return without, "", f"its pictures were left out: with them {too_long}"


def _length(cells: list[RawCell]) -> int:
    return sum(len(cell.source) for cell in cells)


def _without_pictures(cell: RawCell) -> RawCell:
    """The cell as it can be read where all cells together are too long."""
    without = DATA.sub(r"\1", cell.source) if cell.cell_type != "code" else cell.source
    if without == cell.source:
        return cell
    words = "its pictures were left out: with all of them the notebook is longer than "
    drawn = _digest(cell.drawn, cell.source)
    cut = f"{words}{MAX_TEXT // 1_000_000} million characters"
    return cell._replace(source=without, cut=cut, drawn=drawn)


def _digest(*parts: object) -> str:
    """By which pictures are told from others without being read."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _without_prompts(source: str) -> str:
    """A cell without the prompts that were pasted with it: with them it may be Python, too."""
    if not PROMPT.match(source):
        return source
    from IPython.core.inputtransformer2 import ipython_prompt  # which takes its time

    text = source.lstrip("\n")
    lines = text.splitlines(keepends=True)
    return "\n" * (len(source) - len(text)) + "".join(ipython_prompt(lines))


def _string(value: object) -> str:
    return _whole(value) if isinstance(value, str) and len(value) < 200 else ""


def _whole(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones replaced."""
    if not SURROGATES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
