"""Read recorded measurements and show them in tables, for the book.

What the records hold is told in benchmarks/results/README.md; `trainer.records` writes them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

Record: TypeAlias = Mapping[str, Any]

KINDS = ("evaluate", "bench", "ablation")
NUMBER = re.compile(r"([\d.,]+%?( \(.*\)| to [\d.,]+)?)?")  # "41.02 (40.9 to 41.1)", or nothing
HEAD = ("what", "date", "command", "hardware", "versions")  # of every record


@dataclass(frozen=True)
class Table:
    """Rows under a head; a notebook shows it as a table, a terminal as text.

    Columns of numbers are set to the right.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def _repr_html_(self) -> str:
        sides = self._sides()
        head = _html_row("th", self.head, sides)
        body = "".join(_html_row("td", row, sides) for row in self.rows)
        # not a <caption>, which would be as wide as a table that a phone has to scroll
        caption = f"<p>{escape(self.caption)}</p>" if self.caption else ""
        return (
            f'{caption}<div class="pst-scrollable-table-container"><table class="table">'
            f"<thead>{head}</thead><tbody>{body}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        columns = list(zip(self.head, *self.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        lines = [self.caption] if self.caption else []
        for row in (self.head, *self.rows):
            cells = zip(row, widths, self._sides(), strict=True)
            aligned = (f"{cell:{'>' if right else '<'}{width}}" for cell, width, right in cells)
            lines.append("  ".join(aligned).rstrip())
        return "\n".join(lines)

    def _sides(self) -> list[bool]:
        """Whether each column has nothing but numbers."""
        if not self.rows:
            return [False] * len(self.head)
        columns = zip(*self.rows, strict=True)
        return [all(NUMBER.fullmatch(cell) for cell in column) for column in columns]


def read(what: str, folder: Path) -> list[Record]:
    """The records of one kind in all .jsonl files of a folder, oldest first.

    Raises:
        ValueError: if there is no such kind, or a line is no record; it names file and line.
    """
    if what not in KINDS:
        raise ValueError(f"{what!r} is none of {', '.join(KINDS)}")
    found = [record for path in sorted(folder.glob("*.jsonl")) for record in _records(path)]
    return sorted((one for one in found if one["what"] == what), key=lambda one: one["date"])


def latest(records: Sequence[Record], *keys: str) -> list[Record]:
    """Of the records that agree in these fields only the last one, in the order of the first.

    "training.device" is the field "device" of the field "training".
    """
    found: dict[tuple[str, ...], Record] = {}
    for record in records:
        found[tuple(json.dumps(_field(record, key)) for key in keys)] = record
    return list(found.values())


def machine(record: Record) -> str:
    """What did the work, such as "AMD EPYC 9B14, 1 thread" or "2 x NVIDIA H100"."""
    hardware = record["hardware"]
    if record.get("device", "cpu").startswith("cuda"):
        names = hardware["gpu"]
        return names[0] if len(names) == 1 else f"{len(names)} x {names[0]}"
    threads = hardware["threads"]
    return f"{hardware['cpu']}, {threads} thread{'' if threads == 1 else 's'}"


def on_gpu(records: Sequence[Record]) -> list[Record]:
    """Those of the records for which a GPU did the work."""
    return [record for record in records if record.get("device", "cpu").startswith("cuda")]


def sources(records: Sequence[Record]) -> Table:
    """Where the numbers come from: day, machine, versions and command of each record."""
    rows = [
        (record["date"][:10], machine(record), _packages(record), record["command"])
        for record in records
    ]
    return Table(("day", "machine", "versions", "command"), list(dict.fromkeys(rows)))


def _field(record: Any, key: str) -> Any:
    for name in key.split("."):
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


def _html_row(tag: str, row: Sequence[str], sides: Sequence[bool]) -> str:
    cells = (
        f'<{tag} class="text-{"right" if right else "left"}">{escape(cell)}</{tag}>'
        for cell, right in zip(row, sides, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _packages(record: Record) -> str:
    names = ("python", "torch", "sacrebleu")
    return ", ".join(f"{name} {record['versions'][name]}" for name in names)


def _records(path: Path) -> Iterator[Record]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number} is no JSON ({error})") from error
        missing = [key for key in HEAD if key not in record]
        if missing:
            raise ValueError(f"{path}, line {number} lacks {', '.join(missing)}")
        yield record
