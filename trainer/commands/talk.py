"""`python -m trainer talk`: a conversation with a trained run, a sentence at a time."""

import argparse
import contextlib
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.commands.decoder import Decoder, add_decoding

if TYPE_CHECKING:
    from torch import Tensor

HISTORY = ".talk-history"  # in the run's folder
REMEMBERED = 1000  # lines of it
SHADES = ((0.6, "█"), (0.3, "▓"), (0.15, "▒"), (0.05, "░"), (0.0, " "))
ASKING = {"do", "does", "is", "are", "am", "can"}  # what a question of the grammar begins with
HELP = """\
a sentence           its translation
/attention [LAYER]   where the model looked while it wrote the last one (default the last layer)
/picture [FILE]      the same of all layers as a picture (default RUN/attention.svg)
/beam K              keep K hypotheses a sentence from now on; 1 is greedy
/help                this
/quit                the end, as Ctrl-D is"""


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "talk",
        help="talk to a trained run",
        description="Type a sentence and read its translation; Tab completes words that the run "
        "was trained with, the arrow keys bring back earlier lines, /attention shows where the "
        "model looked.",
    )
    add_decoding(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Talk until there is no more to read; the exit status."""
    decoder = Decoder(options)
    for note in decoder.run.notes:
        print(f"note: {note}", file=sys.stderr)
    terminal = sys.stdin.isatty()
    if terminal:
        source, target = decoder.run.source.source, decoder.run.source.target
        print(f"{options.directory}: {decoder.weights.what}, {source} to {target}")
        print("Type a sentence. Tab completes words, /help tells what else there is.")
    talk = Talk(decoder)
    with _line_editor(decoder) if terminal else contextlib.nullcontext():
        for line in _lines(terminal):
            try:
                answer = talk.answer(line)
            except ValueError as error:
                answer = str(error)
            if answer is None:
                break
            if answer:
                print(answer, flush=True)
    return 0


class Talk:
    """Answers to lines: translations, and what the commands show of the last one."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.last: tuple[str, str] | None = (
            None  # a sentence as the model read it, and what it said
        )
        self.commands: dict[str, Callable[[str], str | None]] = {
            "/attention": self._attention,
            "/picture": self._picture,
            "/beam": self._beam,
            "/help": lambda _: HELP,
            "/quit": lambda _: None,
        }

    def answer(self, line: str) -> str | None:
        """What to print; None if the conversation is over."""
        line = line.strip()
        if not line:
            return ""
        if line.startswith("/"):
            name, _, rest = line.partition(" ")
            if name not in self.commands:
                raise ValueError(f"there is no {name}; /help lists what there is")
            return self.commands[name](rest.strip())
        return self._translation(line)

    def _translation(self, line: str) -> str:
        source = self.decoder.run.source
        sentence = prepared(line, whole=source.data == "grammar") if source.tokenised else line
        said = self.decoder.translate([sentence])[0]
        self.last = sentence, said
        notes = []
        if sentence != line:
            notes.append(f"it reads: {sentence}")
        strange = self._unknown(sentence)
        if strange:
            notes.append(f"it has never met: {', '.join(strange)}")
        return "\n".join([said, *(f"  ({note})" for note in notes)])

    def _unknown(self, sentence: str) -> list[str]:
        """Words that the tokeniser has no ids for."""
        tokenizer = self.decoder.run.source_tokenizer
        words = dict.fromkeys(sentence.split())
        return [word for word in words if tokenizer.unk_id in tokenizer.encode(word)]

    def _attention(self, layer: str) -> str:
        source, target, maps = self._maps()
        number = _number(layer, "/attention", len(maps) - 1) if layer else len(maps) - 1
        run = self.decoder.run
        rows, columns = run.target_tokenizer.tokens(target[1:]), run.source_tokenizer.tokens(source)
        head = f"layer {number}, mean over heads; rows are written, columns are read"
        width = shutil.get_terminal_size().columns
        return f"{head}\n{shaded(maps[number].mean(0), rows, columns, width)}"

    def _picture(self, file: str) -> str:
        from trainer.curves import draw_maps

        out = Path(file) if file else self.decoder.run.path / "attention.svg"
        if out.suffix not in (".svg", ".png"):
            raise ValueError(f"{out} must end in .svg or .png")
        if not out.parent.is_dir():
            raise ValueError(f"there is no directory {out.parent}")
        draw_maps(self.decoder.run, *self._maps(), out)
        return str(out)

    def _beam(self, size: str) -> str:
        self.decoder.beam_size = _number(size, "/beam", 100, least=1)
        return f"beam of {self.decoder.beam_size}"

    def _maps(self) -> "tuple[list[int], list[int], list[Tensor]]":
        """Ids of the last sentence and its translation, and the layers' weights."""
        from trainer.curves import cross_attention, source_ids

        if self.last is None:
            raise ValueError("nothing was translated yet; type a sentence first")
        run = self.decoder.run
        source, target = source_ids(run, self.last[0]), run.target_tokenizer.encode(self.last[1])
        model = run.model(self.decoder.weights, max(len(source), len(target)))
        return source, target, cross_attention(model, source, target)


def prepared(line: str, *, whole: bool) -> str:
    """A line as tokenised corpora have it: lower case, punctuation and 's apart.

    Args:
        line: as somebody typed it.
        whole: whether the sentences of the corpus all end in "." or "?".
    """
    text = re.sub(r"([.,?!;:()\"])", r" \1 ", line.lower())
    words = re.sub(r"(?<=\w)('s)\b", r" \1", text).split()
    if whole and words and words[-1] not in (".", "?"):
        words.append("?" if words[0] in ASKING else ".")
    return " ".join(words)


def shaded(weights: "Tensor", rows: Sequence[str], columns: Sequence[str], width: int) -> str:
    """Weights (rows, columns) as blocks for a terminal, the darker the larger.

    Where the terminal is too narrow for the columns' names, they get numbers.
    """
    left = max(map(len, rows)) + 2
    lines = []
    if left + sum(len(column) + 1 for column in columns) > width:
        lines.append(", ".join(f"{number} {column}" for number, column in enumerate(columns)))
        columns = [str(number) for number in range(len(columns))]
    widths = [max(len(column), 2) for column in columns]
    names = " ".join(f"{c:<{w}}" for c, w in zip(columns, widths, strict=True))
    lines.append(f"{'':<{left}}{names}".rstrip())
    for row, values in zip(rows, weights.tolist(), strict=True):
        blocks = (f"{2 * _shade(v):<{w}}" for v, w in zip(values, widths, strict=True))
        lines.append(f"{row:<{left}}{' '.join(blocks)}".rstrip())
    return "\n".join(lines)


def _shade(weight: float) -> str:
    return next(block for least, block in SHADES if weight >= least)


def _number(text: str, what: str, largest: int, least: int = 0) -> int:
    if not text.isdecimal() or not least <= int(text) <= largest:
        raise ValueError(f"{what} takes a number from {least} to {largest}, not {text!r}")
    return int(text)


def _lines(terminal: bool) -> Iterator[str]:
    while True:
        try:
            yield input("> " if terminal else "")
        except EOFError:
            if terminal:
                print()
            return


@contextlib.contextmanager
def _line_editor(decoder: Decoder) -> Iterator[None]:
    """Completion and history, where the system has them."""
    try:
        import readline
    except ImportError:  # Windows
        yield
        return
    words = _known_words(decoder)
    matches: list[str] = []

    def complete(begun: str, number: int) -> str | None:
        nonlocal matches
        if number == 0:
            matches = [word for word in words if word.startswith(begun)]
        return f"{matches[number]} " if number < len(matches) else None

    history = decoder.run.path / HISTORY
    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(REMEMBERED)
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            readline.write_history_file(history)


def _known_words(decoder: Decoder) -> list[str]:
    try:
        return decoder.run.words()
    except ValueError as error:
        print(f"note: no words to complete from: {error}", file=sys.stderr)
        return []
