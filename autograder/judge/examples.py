"""Examples in docstrings, which `doctest` runs as code where a test runs: the instructor's alone.

The docstring of an answer's function is a text of the answer's. Of its examples those are run that
stand in the instructor's notebook as well, as where the stub has them; others are left out.
"""

import doctest
from collections.abc import Iterable
from typing import Any

_KNOWN: set[str] = set()  # examples of the instructor's, of all notebooks that were read here
_PARSER = doctest.DocTestParser()
_found_in, _compile = doctest.DocTestParser.get_examples, compile


def run_no_examples(texts: Iterable[str]) -> None:
    """From now on this process runs no example but those in texts like these of the instructor's.

    Called again, it runs those in the newer texts as well.
    """
    for text in texts:
        if ">>>" in text:
            _KNOWN.update(one.source for one in _examples(text))
    module: Any = doctest
    module.DocTestParser.get_examples, module.compile = _get_examples, _guarded


def _examples(text: str) -> list[doctest.Example]:
    try:
        return _found_in(_PARSER, text)
    except ValueError:  # written in another way than examples are
        return []


def _get_examples(self: doctest.DocTestParser, string: str, name: str = "<string>") -> Any:
    return [one for one in _found_in(self, string, name) if one.source in _KNOWN]


def _guarded(source: Any, *more: Any, **named: Any) -> Any:
    """As `compile`, of what is known."""
    if source not in _KNOWN:
        raise ValueError("an example that stands in no cell of the instructor's is not run")
    return _compile(source, *more, **named)
