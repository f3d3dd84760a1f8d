"""What names of answers stand for with the reference: values, or classes of exceptions."""

from collections.abc import Callable
from typing import Any

from autograder.bridge.due import is_data
from autograder.judge.claims import catches_claims
from autograder.judge.guard import HOME


class Referred:
    """Makes the reference's objects, where it is asked, and remembers what they are."""

    def __init__(self, make: Callable[[set[str]], dict[str, Any]]) -> None:
        self.make = make  # the reference's objects of these names
        self.known: dict[tuple[str, str], bool] = {}

    def is_value(self, name: str) -> bool:
        """Whether what goes by a name is nothing but values with the reference."""
        return self._is("value", name, lambda made: name in made and is_data(made[name]))

    def may_catch(self, name: str) -> bool:
        """Whether what goes by a name with the reference catches what a test claims."""
        return self._is("broad", name, lambda made: bool(catches_claims(made.get(name))))

    def is_own_error(self, name: str) -> bool:
        """Whether what goes by a name with the reference is a class of exceptions of its own."""
        return self._is("error", name, lambda made: _is_own_error(made.get(name)))

    def _is(self, what: str, name: str, of: Callable[[dict[str, Any]], bool]) -> bool:
        if (what, name) not in self.known:
            self.known[what, name] = of(self.make({name}))
        return self.known[what, name]


def _is_own_error(made: Any) -> bool:
    return isinstance(made, type) and issubclass(made, BaseException) and made.__module__ == HOME
