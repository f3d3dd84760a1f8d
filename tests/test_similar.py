"""Near-identical answers: found through renaming, never reported when short, common or given."""

import random

from autograder.classroom.similar import _meetings, fingerprints, flags, pairs, tokens

LOOP = '''
def smooth(values, width):
    """Average over a window."""
    total, out = 0.0, []
    for place, value in enumerate(values):
        total += value
        if place >= width:
            total -= values[place - width]  # leaves the window
        count = min(place + 1, width)
        out.append(round(total / count, 6))
    while len(out) > 100:
        out.pop(0)
    return out
'''

RENAMED = """
def smooth(a, b):
    # my own work
    s, r = 0.0, []
    for i, x in enumerate(a):
        s += x
        if i >= b:

            s -= a[i - b]
        n = min(i + 1, b)
        r.append(round(s / n, 6))
    while len(r) > 100:
        r.pop(0)
    return r
"""

OTHER = """
def smooth(values, width):
    result = []
    for i in range(len(values)):
        start = max(0, i - width + 1)
        window = values[start : i + 1]
        result.append(sum(window) / len(window))
    if len(result) > 100:
        result = result[-100:]
    return [float(f"{x:.6f}") for x in result]
"""


def answer_of(number: int) -> str:
    """A long answer that no other number gives."""
    draw = random.Random(number)
    names = [f"helper_{draw.randrange(10**6)}" for _ in range(30)]
    marks = [draw.choice(["+", "-", "*", "/", "//", "%", "@", "|"]) for _ in range(30)]
    lines = [
        f"    x = np.{a}(x) {m} {draw.randrange(99)}" for a, m in zip(names, marks, strict=True)
    ]
    return "def f(x):\n" + "\n".join(lines) + "\n    return x\n"


def test_names_comments_docstrings_and_layout_do_not_count():
    assert tokens(LOOP) == tokens(RENAMED)
    assert fingerprints(LOOP) == fingerprints(RENAMED)


def test_a_line_that_begins_with_a_percent_sign_counts():
    assert tokens("y = (x\n    % 24)") == tokens("y = x % 24")[:2] + tokens("(x % 24)")
    assert tokens("%time y = f(x)")[-4:] == tokens("y = f(x)")[-4:]


def test_names_of_the_library_do_count():
    assert tokens("y = np.sum(x, axis=0)") != tokens("y = np.max(x, axis=0)")


def test_a_renamed_copy_is_found_and_another_way_is_not():
    answers = {"ada": {"q": LOOP}, "bo": {"q": RENAMED}, "cy": {"q": OTHER}}
    (pair,) = pairs(answers, {})
    assert (pair.first, pair.second, pair.question, pair.share) == ("ada", "bo", "q", 1.0)


def test_a_copy_with_a_changed_line_is_found():
    changed = RENAMED.replace("round(s / n, 6)", "round(s / max(n, 1), 5)")
    found = pairs({"ada": {"q": LOOP}, "bo": {"q": changed}}, {})
    assert [(pair.first, pair.second) for pair in found] == [("ada", "bo")]
    assert 0.8 <= found[0].share < 1


def test_a_copy_that_does_not_compile_is_found():
    broken = RENAMED.replace("while len(r) > 100:", "while len(r > 100:")
    assert pairs({"ada": {"q": LOOP}, "bo": {"q": broken}}, {})


def test_short_answers_are_never_reported():
    short = "def f(x):\n    return (x - x.mean()) / x.std()"
    assert pairs({"ada": {"q": short}, "bo": {"q": short}}, {}) == []


def test_what_the_release_gives_is_no_resemblance():
    answers = {"ada": {"q": LOOP}, "bo": {"q": RENAMED}}
    assert pairs(answers, {"q": [LOOP]}) == []


def test_what_much_of_the_class_has_is_no_resemblance():
    crowd = {f"s{n}": {"q": LOOP} for n in range(5)}
    assert pairs(crowd, {}) == []
    rest = {f"t{n}": {"q": answer_of(n)} for n in range(20)}
    assert {pair.first for pair in pairs(crowd | rest, {})} == {"s0"}


def test_everybody_who_handed_in_the_same_is_flagged_and_nobody_is_accused():
    answers = {f"s{n:02}": {"q": answer_of(n)} for n in range(40)}
    answers |= {f"copy{n}": {"q": answer_of(7)} for n in range(5)}
    found = flags(answers, {}, "03_smooth")
    assert set(found) == {"s07", *(f"copy{n}" for n in range(5))}
    (flag,) = found["copy0"]
    assert flag.kind == "similar"
    assert flag.where == "03_smooth/q"
    assert flag.words.startswith("near-identical to the answers of ")
    assert flag.words.endswith("in 03_smooth/q: have a look")


def test_a_long_answer_that_holds_others_makes_nobodys_answer_look_like_a_copy():
    ways = {
        "ada": LOOP,
        "bo": OTHER,
        "eve": "\n".join([RENAMED, OTHER, answer_of(1), answer_of(2)]),
    }
    found = flags({name: {"q": text} for name, text in ways.items()}, {}, "nb")
    words = "the answers of ada and bo are contained in the much longer one in nb/q: have a look"
    assert {name: [flag.words for flag in given] for name, given in found.items()} == {
        "eve": [words]
    }
    (flag,) = flags({name: {"q": ways[name]} for name in ("ada", "eve")}, {}, "nb")["eve"]
    assert flag.words == words.replace("the answers of ada and bo are", "ada's answer is")
    half = {"ada": {"q": LOOP}, "eve": {"q": RENAMED + OTHER}}
    assert set(flags(half, {}, "nb")) == {"ada", "eve"}  # a copy with something added is one still


def test_no_string_hides_what_follows_it():
    """A quote behind a backslash ends none, and what comes after is read as Python reads it."""
    for first in ("_ = '''\\''' '''\n", '_ = """\\""" """\n', "_ = r'''\\''' '''\n"):
        compile(first + RENAMED, "answer", "exec")
        found = flags({"ada": {"q": LOOP}, "eve": {"q": first + RENAMED}}, {}, "nb")
        assert set(found) == {"ada", "eve"}, first


def test_an_answer_of_which_not_all_is_compared_is_named():
    answers = {"ada": {"q": LOOP}, "eve": {"q": "a = 1\n" * 2700 + RENAMED, "r": LOOP}}
    (flag,) = flags(answers, {}, "nb")["eve"]
    assert flag.words.startswith("more than 8000 tokens in nb/q, of which the first were compared")
    assert set(flags({"eve": {"q": "# a\n" * 9000 + "a = 1\n" * 2000}}, {}, "nb")) == set()


def test_the_same_pair_in_several_questions_is_one_line():
    answers = {name: {"q": LOOP, "r": answer_of(1)} for name in ("ada", "bo")}
    (flag,) = flags(answers, {}, "nb")["bo"]
    assert flag.words == "near-identical to ada's answers in nb/q, r: have a look"


def test_nothing_odd_breaks_it():
    odd = ["", "\x00", "'" * 999, '"""', "(" * 5000, "é = 'ü", "%%bash\nrm -rf /", "\ud800" * 80]
    answers = {f"s{n}": {"q": text} for n, text in enumerate(odd)}
    assert pairs(answers, {}) == []


def test_comparisons_grow_no_faster_than_the_class():
    def compared(students: int) -> int:
        groups = students // 10  # of ten who share a fingerprint; another one is everybody's
        kept = {f"s{n}": frozenset({0, 1 + n % groups}) for n in range(students)}
        return len(_meetings(kept))

    assert compared(4000) == 10 * compared(400) == 4000 // 10 * 45
