"""Tests that look at their process, or that have the answer on both sides of a claim, are found by reading them."""

from __future__ import annotations

import ast

import pytest

from steelyard.verifiers.python.answer_claims import answer_claims
from steelyard.verifiers.python.changed_arguments import looks_at_arguments_again
from steelyard.verifiers.python.guest.test_names import has_own_claims
from steelyard.verifiers.python.process_claims import speaks_of_process


@pytest.mark.parametrize(
    "tests",
    [
        "import os\nf()\nassert 'KEY' not in os.environ\n",
        "from pathlib import Path\nf()\nassert not Path('a').exists()\n",
        "from time import process_time as clock\nbegan = clock()\nf()\nassert clock() - began < 1\n",
        "import random\nbefore = random.getstate()\nf()\nassert random.getstate() == before\n",
        "import math\nseen = []\nmath.sqrt = seen.append\nf(4)\nassert seen == []\n",
        "import math\ndel math.sqrt\nassert f(4) == 2\n",
        "import warnings\nwarnings.simplefilter('error')\nassert f() == 3\n",
        "import sys\nsys.setrecursionlimit(100)\nassert f(500) == 500\n",
        "import string\nf()\nassert string.digits == '0123456789'\n",
        "import unittest, gc\nclass T(unittest.TestCase):\n    def test(self):\n        f()\n        self.assertTrue(gc.isenabled())\n",
        "from contextlib import redirect_stderr\nfrom io import StringIO\nto = StringIO()\nwith redirect_stderr(to): f()\nassert to.getvalue() == ''\n",
    ],
)
def test_a_claim_about_the_process_is_seen(tests: str) -> None:
    assert speaks_of_process(ast.parse(tests))


@pytest.mark.parametrize(
    "tests",
    [
        "import math\nassert f(2) == math.sqrt(2)\nassert math.fsum([1, 2]) == 3\n",
        "import random\nrandom.seed(1)\ndata = [random.random() for _ in range(9)]\nassert f(data) == sorted(data)\n",
        "import time\nbegan = time.time()\nf()\nassert time.time() - began < 5\n",
        "import sys\nsys.setrecursionlimit(10 ** 6)\nassert f(5) == sys.maxsize\n",
        "from pathlib import Path\nassert f(Path('a/b')) == Path('a')\n",
        "import json\ndata = json.loads('[1]')\nf(data)\nassert data == [1, 2]\n",
        "from contextlib import redirect_stdout\nimport io\nto = io.StringIO()\nwith redirect_stdout(to): f()\nassert to.getvalue() == 'hi'\n",
        "import pytest\ndef test():\n    with pytest.raises(ValueError) as info: f()\n    assert info.type is ValueError\n",
        "times = f(3)\nv = g()\nassert times[0] == 1 and v.patch == 3\n",
        "from datetime import datetime\nnow = datetime(2024, 1, 1)\nassert f(now) == now\n",
    ],
)
def test_tests_that_only_compute_are_not_of_the_process(tests: str) -> None:
    assert not speaks_of_process(ast.parse(tests))


def is_own_claim(tests: str, **found: object) -> bool:
    return has_own_claims(found, answer_claims(ast.parse(tests), "f"))


def f(*_: object) -> None:
    """Stands for a function of an answer."""


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(2) == g(2)\n",
        "want = g(2)\ngot = f(2)\nassert got == want\n",
        "assert g(f(2), 1.41)\n",
        "assert all(g(f(x), x) for x in range(3))\n",
        "data = [1]\nbefore = g(data)\nf(data)\nassert data == before\n",
        "import answer\nclose = getattr(answer, 'close', None)\nassert close(answer.f(2), 1)\n",
        "try:\n    from answer import g\nexcept ImportError:\n    def g(a, b): return a == b\nassert g(f(2), 1.41)\n",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(2), g(2))\n",
        "def check(candidate):\n    assert candidate(1) == g\n",
    ],
)
def test_a_claim_with_the_answer_on_both_sides_is_its_own_word(tests: str) -> None:
    assert is_own_claim(tests, f=f, g=f)
    assert is_own_claim(tests, f=f, g=3)


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(2) == 4\nassert g(f(2)) == 2\n",
        "assert f(f(2)) == f(2)\n",
        "assert f(g(f(2))) == f(2)\n",
        "from math import sqrt as g\nassert f(2) == g(2)\n",
        "def g(x): return x * 2\nassert f(2) == g(2)\n",
        "answer = f(2)\nassert answer == 4\n",
    ],
)
def test_other_claims_are_not(tests: str) -> None:
    assert not is_own_claim(tests, f=f, g=f)


def test_a_name_for_another_class_is_the_answers_word() -> None:
    assert has_own_claims({"TooBig": LookupError}, [])
    assert has_own_claims({"Shape": (int, str)}, [])
    assert not has_own_claims({"LookupError": LookupError, "f": f}, [])


@pytest.mark.parametrize(
    ("claim", "is_again"),
    [
        ("assert out == [1, 2, 3]", False),
        ("assert list(map(g, data)) == [1, 2, 3]", False),
        ("assert data == [3, 1, 2]", False),
        ("assert all(item in out for item in data)", True),
        ("assert all(a == b for a, b in zip(out, data))", True),
        ("import operator\nassert operator.eq(out, data)", True),
        ("def same(a, b):\n    return sorted(a) == sorted(b)\nassert same(out, data)", True),
    ],
)
def test_what_was_handed_to_the_answer_is_looked_at_again_where_it_is_compared_with_the_result(
    claim: str, is_again: bool
) -> None:
    assert looks_at_arguments_again(ast.parse(f"data = [3, 1, 2]\nout = f(data)\n{claim}\n")) == is_again
