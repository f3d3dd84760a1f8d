"""Ways to names by their text of which only a text is made, or that an object has of itself."""

import pytest

from tests.judge.test_rules_out_of_sight import found

HEAD = "class Kept(nn.Module):\n    def __getstate__(self):\n        "
TAIL = "\ndef f(x):\n    return Kept()(x)"
KEPT = HEAD + "return super().__getstate__()" + TAIL


def shown(line: str) -> str:
    """An answer that begins with a line."""
    return f"def f(x):\n    {line}\n    return x"


@pytest.mark.parametrize(
    "answer",
    [
        KEPT,
        "(G := torch.nn.functional)\ndef f(x):\n    return G.relu(x)",
        "from math import *\ndef f(x):\n    return '{d}'.format(**x.__dict__)",
        HEAD + "state = super().__getstate__().copy()\n        return state" + TAIL,
        *map(
            shown,
            (
                "print(vars(x))",
                "print(vars(x).keys(), x.__dict__.keys(), list(vars(x).keys()))",
                "print(x.__dict__)",
                "print('x is', str(vars(x)), repr(x.__dict__), len(vars(x)))",
                "print(f'{x.__dict__}, {vars(x)!r}')",
                "return '{d}, eps={eps}'.format(d=1, **x.__dict__)",
                "return '{}'.format(vars(x))",
                "return getattr(x, f'{x}_embedding')",
                "return getattr(x, str(x) + '_layer')",
                "return getattr(x, 'layer%d' % x)",
                "return getattr(x, 'layer{}'.format(x))",
                "return getattr(x, 'T' if x.dim() == 2 else 'mT')",
                "for name in list(vars(x)): print(name)",
            ),
        ),
    ],
)
def test_what_gets_nothing_by_a_text_is_allowed(answer: str):
    assert not found(answer)


@pytest.mark.parametrize(
    "answer",
    [
        *map(
            shown,
            (
                "vars(x)['so' 'rt']()",
                "x.__dict__['so' 'rt']()",
                "dict(vars(x))",
                "list(vars(x).values())",
                "print(vars(torch).keys())",
                "print(vars(x).keys().mapping)",
                "dict(**x.__dict__)",
                "kept = x.__dict__\n    print(kept)",
                "print(*vars(x).values())",
                "print(vars(torch))",
                "print(torch.__dict__)",
                "print(vars())",
                "y = x.format(**x.__dict__)",  # a method of anybody's
                "str = dict\n    y = str(vars(x))",
                "getattr(x, '%s' % 'so' 'rt')",
                "getattr(x, 's%srt' % 'o')",
                "getattr(x, '%s_layer' % x)",
                "getattr(x, '{}_layer'.format(x))",
                "getattr(x, 'so{}'.format(x))",
                "getattr(x, f'{x}rt')",
                "getattr(x, f'{x}_sort')",
                "getattr(x, f'{x}_sort_')",
                "getattr(x, 'sort_' + x)",
                "getattr(x, x + 'globals__')",
                "getattr(torch, f'{x}_embedding')",
                "getattr(x, 'T' if x else 'sort')",
                "getattr(x, 'sort' if x else 'T')",
                "getattr(x, 'T' if x else x)",
                "x.__getstate__()",
                "super(x, x).__getstate__()",
                "super().__getstate__()",
            ),
        ),
        "def print(one): return one['so' 'rt']()\ndef f(x):\n    return print(vars(x))",
        "from os import *\ndef f(x):\n    return str(vars(x))",
        "(G := torch.nn.functional)\ndef f(x):\n    return G.softmax(x)",
        "G = [H := torch.nn.functional]\ndef f(x):\n    return H.relu(x)",
        "class G:\n    (H := torch.nn.functional)\ndef f(x):\n    return G.H.relu(x)",
        "class vars(dict): pass\ndef f(x):\n    return x.__dict__",
        # an object of somebody else's may pass for one of the class
        KEPT.replace("nn.Module", "list"),
        KEPT.replace("nn.Module", "type"),
        KEPT.replace("(nn.Module)", "(metaclass=M)"),
        KEPT.replace("super()", "super(Kept, self)"),
        KEPT.replace("super()", "self"),
        KEPT.replace("super()", "super().x"),
        KEPT.replace("__()", "__"),
        "def super(): return torch\n" + KEPT,
        KEPT + "\nclass More(Kept, list): pass",
        "class Around:\n    class Kept(list):\n        def g(self): return super().__getstate__()\n"
        "def f(x):\n    return Around.Kept(x).g()",
    ],
)
def test_what_may_get_something_is_not(answer: str):
    assert found(answer)
