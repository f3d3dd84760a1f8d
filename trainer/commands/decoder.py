"""Flags that subcommands share which decode with the weights of a run."""

import argparse
import sys
from pathlib import Path
from typing import Any


def add_run(command: argparse.ArgumentParser) -> None:
    """The run's directory."""
    command.add_argument("directory", type=Path, metavar="RUN", help="directory of a training run")


def add_decoding(command: argparse.ArgumentParser) -> None:
    """Which weights, how wide a beam, where."""
    add_run(command)
    command.add_argument(
        "--beam",
        type=int,
        metavar="K",
        help="hypotheses a sentence (default the recipe's; 1: greedy)",
    )
    command.add_argument("--length-penalty", type=float, metavar="A", help="default the recipe's")
    weights = command.add_mutually_exclusive_group()
    weights.add_argument(
        "--average",
        type=int,
        metavar="K",
        help="mean of the last K checkpoints (default: what the recipe says)",
    )
    weights.add_argument(
        "--weights", type=Path, metavar="FILE", help="what `average` wrote, in place of checkpoints"
    )
    command.add_argument(
        "--max-tokens",
        type=int,
        default=4096,
        metavar="N",
        help="ids decoded at once (default 4096)",
    )
    command.add_argument(
        "--device", default="auto", metavar="NAME", help="auto (default), cpu, cuda, cuda:1 or mps"
    )
    command.add_argument("--threads", type=int, metavar="N", help="of torch, on the CPU")


class Decoder:
    """A run's model with weights, and how it decodes."""

    def __init__(self, options: argparse.Namespace) -> None:
        from trainer.distributed import find_device
        from trainer.fused.process import prepare_process
        from trainer.runs import open_run

        for name, least in (("beam", 1), ("max_tokens", 1), ("threads", 1)):
            value = getattr(options, name)
            if value is not None and value < least:
                raise ValueError(f"--{name.replace('_', '-')} ({value}) must be at least {least}")
        self.device = find_device(options.device)
        self.run = open_run(options.directory)
        self.weights = self.run.weights(options.average, options.weights)
        self.max_tokens = options.max_tokens
        penalty = options.length_penalty
        self.beam_size = options.beam or self.run.beam_size
        self.length_penalty = self.run.length_penalty if penalty is None else penalty
        prepare_process(options.threads)

    def translate(self, sentences: list[str], progress: bool = False) -> list[str]:
        """The sentences in the other language."""
        from trainer.decoding import translate
        from trainer.preparation import way_of

        run = self.run
        longest = max(map(len, run.source_tokenizer.encode_all(sentences)))
        # as much room as decoding may want: twice the source's tokens and 20 more
        model = run.model(self.weights, 2 * longest + 21).to(self.device)
        slow = way_of(run.module, model)
        if slow:
            print(f"note: decoding without a cache: {slow}", file=sys.stderr)
        return translate(
            run.module,
            model,
            sentences,
            run.source_tokenizer,
            run.target_tokenizer,
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            max_tokens=self.max_tokens,
            device=self.device,
            progress=progress,
        )

    def search(self, sentences: list[str], progress: bool = False) -> list[str]:
        """The same by the module's own `beam_search`."""
        from trainer.own import search

        run = self.run
        tokenizers = run.source_tokenizer, run.target_tokenizer
        longest = max(map(len, tokenizers[0].encode_all(sentences)))
        model = run.model(self.weights, 2 * longest + 21).to(self.device)
        how = self.beam_size, self.length_penalty
        return search(run.module, model, sentences, tokenizers, *how, progress=progress)

    def facts(self) -> dict[str, Any]:
        """How it decodes, for a record."""
        return {
            "weights": self.weights.what,
            "beam": self.beam_size,
            "length_penalty": self.length_penalty,
        }
