"""Answers that are awaited, and answers that await what a test hands over."""

from typing import Any

import pytest

from tests.judge.small_course import HIDDEN_PART, rehearsed

ANSWER = """import asyncio
async def double(x):
    await asyncio.sleep(0)
    return 2 * x
async def fails(x):
    raise ValueError(f"no {x}")
async def ticks(n):
    for i in range(n):
        await asyncio.sleep(0.001)
        yield i
class Door:
    def __init__(self, said): self.said = said
    async def __aenter__(self):
        self.said.append("in")
        return self
    async def __aexit__(self, *a): self.said.append("out")
async def all_of(fetch, names):
    return await asyncio.gather(*[fetch(name) for name in names])
async def firsts(source, n):
    found = []
    async for x in source:
        found.append(x)
        if len(found) == n: break
    return found
async def tries(job, times):
    for left in range(times):
        try:
            return await job()
        except ConnectionError:
            await asyncio.sleep(0)
    return None
def runs(x): return asyncio.run(double(x))
"""
TESTS = {
    "run": "import asyncio\nassert asyncio.run(double(3)) == 6",
    "in a coroutine": """import asyncio
async def check():
    assert await double(3) == 6
    a, b = await asyncio.gather(double(1), double(2))
    task = asyncio.create_task(double(5))
    assert (a, b, await task) == (2, 4, 10)
    assert await asyncio.wait_for(double(7), 5) == 14
asyncio.run(check())""",
    "an error": """import asyncio
try:
    asyncio.run(fails(3))
except ValueError as error:
    assert "no 3" in str(error)
else:
    raise AssertionError""",
    "a generator": """import asyncio
async def check(): return [i async for i in ticks(3)]
assert asyncio.run(check()) == [0, 1, 2]""",
    "a context": """import asyncio
said = []
async def check():
    async with Door(said) as door: said.append("at")
asyncio.run(check())
assert said == ["in", "at", "out"]""",
    "what it is handed": """import asyncio
asked = []
async def fetch(name):
    asked.append(name)
    await asyncio.sleep(0.001)
    return name.upper()
assert asyncio.run(all_of(fetch, ["a", "b"])) == ["A", "B"] and sorted(asked) == ["a", "b"]""",
    "a source": """import asyncio
async def source():
    for i in range(9): yield i * i
assert asyncio.run(firsts(source(), 3)) == [0, 1, 4]""",
    "a retry": """import asyncio
calls = []
async def job():
    calls.append(1)
    if len(calls) < 3: raise ConnectionError("down")
    return "up"
assert asyncio.run(tries(job, 5)) == "up" and len(calls) == 3""",
    "what it is": """import asyncio, inspect
assert asyncio.iscoroutinefunction(double) and not asyncio.iscoroutinefunction(runs)
assert inspect.iscoroutinefunction(double) and inspect.isasyncgenfunction(ticks)
made = double(2)
assert inspect.isawaitable(made) and asyncio.iscoroutine(made) and asyncio.run(made) == 4""",
    "a loop of the test's": """import asyncio
loop = asyncio.new_event_loop()
assert loop.run_until_complete(double(4)) == 8
loop.close()
assert runs(4) == 8""",
}
WRONG = """def double(x): return None
fails = runs = all_of = firsts = tries = ticks = double
class Door:
    def __init__(self, said): pass
    async def __aenter__(self): return self
    async def __aexit__(self, *a): pass
"""


@pytest.mark.parametrize("way", TESTS)
def test_what_is_awaited_runs_where_it_is(task: Any, way: str) -> None:
    made = rehearsed(task([("own", ANSWER), ("t_own", TESTS[way], 1)]))
    assert made.scores(own=ANSWER) == {"t_own": 1}
    assert made.scores(own=WRONG) == {"t_own": 0}


def test_an_answer_does_nothing_else_with_a_coroutine_of_the_tests(task: Any) -> None:
    right = "async def ask(job): return await job()"
    test = "import asyncio\nasync def job(): return 3\nassert asyncio.run(ask(job)) == 3"
    made = rehearsed(task([("own", right), ("t_own", test, 1)]))
    for reach in ("cr_frame", "cr_code", "send(None)", "__class__", "cr_frame.f_globals"):
        forged = f"async def ask(job):\n    print(job().{reach}.x)\n    return 3"
        assert made.scores(own=forged) == {"t_own": 0}
    assert made.scores(own="def ask(job): return job()") == {"t_own": 1}


def test_nothing_is_asked_of_a_coroutine_but_what_it_gives(task: Any) -> None:
    """Where `asyncio` looks at it, in `run`, and where nobody awaits it."""
    right = "async def ask(job): return await job()"
    test = "import asyncio\nasync def job(): return 3\nassert asyncio.run(ask(job)) == 3"
    made = rehearsed(task([("own", right), ("t_own", test, 1)]))
    assert {call.what for call in made.known.of("t_own")[0]} == {"ask", "ask().__await__"}
    assert made.scores(own="async def ask(job):\n    job()\n    return 3") == {"t_own": 1}


def test_who_never_ends_is_ended(task: Any) -> None:
    right = "async def ask(job): return await job()"
    test = "import asyncio\nasync def job(): return 3\nassert asyncio.run(ask(job)) == 3"
    more = [("g", "def g(): return 1"), ("t_g", "assert g() == 1", 2)]
    made = task([("own", right), ("t_own", test, 1), *more], seconds=0.5)
    for ends in (
        "while True: pass",
        "while True: await asyncio.sleep(0)",
        "await asyncio.Future()",
    ):
        scores = made.scores(own=f"import asyncio\nasync def ask(job):\n    {ends}")
        assert scores == {"t_own": 0, "t_g": 2}


def test_what_may_only_be_awaited_is_no_coroutine(task: Any) -> None:
    right = "async def own(x): return x + 1"
    one = "class One:\n    def __init__(self, x): self.x = x\n    def __await__(self):\n"
    one += "        return self.x + 1\n        yield\ndef own(x): return One(x)"
    runs = "import asyncio\nassert asyncio.run(own(1)) == 2"
    asks = "import inspect\nc = own(1)\nassert inspect.iscoroutine(c) and inspect.isawaitable(c)"
    awaits = "import asyncio\nasync def go(): return await own(1)\nassert asyncio.run(go()) == 2"
    tests = [("t_runs", runs, 1), ("t_asks", asks, 1), ("t_awaits", awaits, 1)]
    parts = [(name, HIDDEN_PART.format(test), n) for name, test, n in tests]
    made = rehearsed(task([("own", right), *parts]))
    assert made.scores(own=right) == {"t_runs": 1, "t_asks": 1, "t_awaits": 1}
    assert made.scores(own=one) == {"t_runs": 0, "t_asks": 0, "t_awaits": 1}


def test_a_plain_function_finds_the_tests_loop(task: Any) -> None:
    right = """import asyncio
class Works:
    def __init__(self, job): self.job = job
    def start(self): return asyncio.create_task(self.run())
    async def run(self): return await self.job()
def load(x): return x + 1"""
    starts = """import asyncio
async def job(): return 7
async def main(): return await Works(job).start()
assert asyncio.run(main()) == 7"""
    loads = "import asyncio\nasync def main(): return load(4)\nassert asyncio.run(main()) == 5"
    tests = [("t_own", HIDDEN_PART.format(starts), 1), ("t_load", HIDDEN_PART.format(loads), 1)]
    made = rehearsed(task([("own", right), *tests]))
    assert made.scores(own=right) == {"t_own": 1, "t_load": 1}
    runs = right.replace("return x + 1", "return asyncio.run(asyncio.sleep(0, x + 1))")
    assert made.scores(own=runs) == {"t_own": 1, "t_load": 0}  # one runs already
