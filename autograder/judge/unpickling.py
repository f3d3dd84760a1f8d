"""What a test unpickles may be an answer's, and could then run any code: only data is made of it.

A file of the instructor's is read as ever.
"""

import io
import pickle
import sys
from pathlib import Path
from typing import Any

MAY_BE = {  # by module; what calls something that is told in turn is not among them
    "builtins": "bool bytearray bytes complex dict float frozenset int list object range set slice "
    "str tuple",
    "collections": "ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "pathlib": "PosixPath PurePosixPath PureWindowsPath",
    "uuid": "UUID",
    "copyreg": "_reconstructor",
    "numpy": "dtype ndarray",
    "numpy.core.multiarray": "_reconstruct scalar",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
}
TESTS = ("<test ", "<instructor ")  # how the files of their code begin
_loads, _load = pickle.loads, pickle.load


def watch() -> None:
    """From now on tests unpickle data alone."""
    module: Any = pickle
    module.loads, module.load = _of_bytes, _of_file


class _Data(pickle.Unpickler):
    """Reads data, and nothing that runs code."""

    def find_class(self, module: str, name: str, /) -> Any:
        """A class of data, or what makes such an object."""
        if name not in MAY_BE.get(module, "").split():
            raise pickle.UnpicklingError(
                f"{module}.{name} in a text that an answer may have made; compare the values"
            )
        return super().find_class(module, name)


def _is_tests(code: Any) -> bool:
    """Whether this is code of a cell, or of a module beside the notebook."""
    return code.co_filename.startswith((*TESTS, f"{Path.cwd()}/"))


def _of_bytes(data: Any, /, **named: Any) -> Any:
    """As `pickle.loads`."""
    if not _is_tests(sys._getframe(1).f_code):
        return _loads(data, **named)
    return _Data(io.BytesIO(data), **named).load()


def _of_file(file: Any, **named: Any) -> Any:
    """As `pickle.load`."""
    if type(file) is not io.BytesIO or not _is_tests(sys._getframe(1).f_code):
        return _load(file, **named)
    return _Data(file, **named).load()
