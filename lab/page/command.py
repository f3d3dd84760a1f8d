"""`python -m lab page`: a trained model of one's own in one page that needs no network."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from lab.five_minutes import GrammarData
    from lab.kept import Kept

PAGE = Path("translator.html")
TRIED = 5  # held-out sentences that the model and the page's arithmetic must agree on


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "page",
        help="put a trained model into one web page that needs no network",
        description="Write one HTML file that holds the model of a run of `python -m lab train` "
        "and runs it in the browser: it translates, shows every attention, searches, and can be "
        "broken. Weights are rounded to int8.",
    )
    command.add_argument("folder", type=Path, metavar="RUN", help="such as runs/mine")
    command.add_argument(
        "--out", type=Path, default=PAGE, metavar="FILE", help=f"the page (default {PAGE})"
    )
    command.add_argument(
        "--sentence",
        action="append",
        default=[],
        metavar="TEXT",
        help="an English sentence to offer first; may be given more than once",
    )
    command.add_argument(
        "--weights", action="store_true", help="write only the script that the book's pages load"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the page, or the book's file."""
    # Here, so that a look at the help need not wait for torch.
    from lab.files import write_text
    from lab.own import one_thread
    from lab.page import writing

    with one_thread():
        content = content_of(options.folder, options.sentence)
    text = writing.weights_script(content) if options.weights else writing.whole_page(content)
    try:
        write_text(options.out, text)
    except OSError as error:
        raise ValueError(f"{options.out} cannot be written ({error.strerror})") from error
    size, sent, found = len(text.encode()), writing.gzipped(text), content["measured"]
    print(
        f"{options.out}: {size / 1000:,.0f} kB, {sent / 1000:,.0f} kB compressed; "
        f"{found['exact']} of {found['sentences']} held-out sentences right with rounded weights"
    )
    return 0


def content_of(path: Path, sentences: list[str]) -> dict[str, Any]:
    """What a page holds of a run: its last weights, rounded, and sentences to try.

    Raises:
        ValueError: if it is no run, has no weights, or its model is not the course's.
    """
    from lab.five_minutes import grammar_data
    from lab.kept import read_kept
    from lab.page.numbers import course_tensors, held_against, packed, sizes_of, unpacked
    from lab.page.opening import opening

    kept = read_kept(path)
    stages = kept.stages()
    if not stages:
        raise ValueError(f"{path} holds no weights yet; they come when the training ends")
    model = kept.model(stages[-1].tensors(), str(stages[-1].path))
    sizes = sizes_of(kept.recipe, model, kept.target.pad_id)
    tensors = course_tensors(model, sizes, (len(kept.source), len(kept.target)))
    positions = kept.module.sinusoidal_encoding(kept.content["max_len"], sizes.d_model)
    data = grammar_data(kept.content["pairs"], kept.content["seed"])
    tried = [
        (kept.source.encode(english), kept.target.encode(french))
        for english, french in data.held_out[:TRIED]
    ]
    held_against(model, tensors, sizes, positions, tried)
    more = {"examples": _examples(kept, data, sentences), "steps": stages[-1].steps}
    content = packed(kept, tensors, sizes, positions, measured={}, openings=[], **more)
    rounded, _ = unpacked(content)
    model.load_state_dict(rounded)
    words = kept.source, kept.target
    openings = [opening(one, words, rounded, sizes, positions) for one in more["examples"]]
    return content | {"measured": _measured(kept, model, data), "openings": openings}


def _examples(kept: "Kept", data: "GrammarData", sentences: list[str]) -> list[str]:
    """Sentences to offer: those asked for, then held-out ones that ask most of a translator."""
    from lab.phenomena import telling_pairs

    longest = kept.content["max_len"] - 2
    for sentence in sentences:
        if not 1 <= len(sentence.split()) <= longest:
            raise ValueError(f"--sentence {sentence!r} must have 1 to {longest} words")
    telling = [english for english, _ in telling_pairs(data.held_out)]
    return list(dict.fromkeys([*sentences, *telling]))


def _measured(kept: "Kept", model: "nn.Module", data: "GrammarData") -> dict[str, int]:
    from lab.five_minutes import measure

    found = measure(kept.module, model, data)
    return {"exact": found.exact, "sentences": found.sentences}
