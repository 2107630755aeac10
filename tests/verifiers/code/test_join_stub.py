"""A stub and what a reply brings of it, made one program."""

from __future__ import annotations

import textwrap

import pytest

from steelyard.records import Case, Verify
from steelyard.text import verbatim_code, verbatim_reply
from steelyard.verifiers.code.join_stub import code_from_reply

STUB = (
    "import math\nfrom typing import List\n\n\ndef helper(x):\n    return math.floor(x)\n\n\n"
    'def floors(numbers: List[float]) -> List[int]:\n    """ Floor them.\n    >>> floors([1.5])\n    [1]\n    """\n'
)
BODY = "    result = []\n    for number in numbers:\n        result.append(helper(number))\n    return result\n"
FUNCTION = f"def floors(numbers: List[float]) -> List[int]:\n{BODY}"
WHOLE = FUNCTION.replace("helper", "math.floor")
CASE = Case(id="f", prompt="p", language="python", verify=Verify(stub=STUB, entry_point="floors"))


def fenced(code: str, label: str = "python") -> str:
    return f"```{label}\n{code}```\n"


def floors(text: str) -> list[int]:
    """What the program in a reply makes of two numbers."""
    found = code_from_reply(CASE, text)
    assert found.code is not None, found.how
    names: dict[str, object] = {}
    exec(found.code, names)
    result: list[int] = eval("floors([1.5, -0.5])", names)
    return result


@pytest.mark.parametrize(
    "text",
    [
        fenced(WHOLE),
        fenced(WHOLE, ""),
        WHOLE,
        f"Sure, here you go:\n\n{fenced(WHOLE)}\nIt floors every number.",
        f"Sure, here you go:\n\n{WHOLE}\nThis function floors every number of the list.",
        fenced(FUNCTION),
        fenced(STUB + BODY),
        STUB + BODY,
        fenced("from __future__ import annotations\n" + FUNCTION),
        fenced('"""A docstring."""\nfrom __future__ import annotations\n' + FUNCTION),
        fenced("def helper(x):\n    return int(x // 1)\n\n\n" + FUNCTION),
        fenced(FUNCTION + "\n\nif __name__ == '__main__':\n    print(floors([1.5]))\n"),
        fenced(FUNCTION) + "For example:\n" + fenced("print(floors([1.5]))\n"),
        fenced("def other(x):\n    return helper(x)\n") + fenced(FUNCTION.replace("helper", "other")),
    ],
)
def test_a_whole_function_finds_the_imports_and_helpers_of_the_stub(text: str) -> None:
    assert floors(text) == [1, -1]


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        BODY.strip(),
        textwrap.dedent(BODY),
        fenced(BODY),
        fenced(textwrap.dedent(BODY)),
        fenced(BODY.lstrip()),
        fenced(textwrap.indent(textwrap.dedent(BODY), "  ")),
        fenced("    # each by itself\n" + BODY),
        f"The body of the function:\n\n{fenced(BODY)}\nThat is all.",
        f"The body of the function:\n\n{BODY}\nThat is all.",
        f"<think>{WHOLE.replace('result.append', 'print')}</think>\n{BODY}",
        "    return [helper(number) for number in numbers]",
        "return [helper(number) for number in numbers]",
        BODY.replace("\n", "\r\n"),
        fenced("    def one(number):\n        return helper(number)\n    return list(map(one, numbers))\n"),
        fenced("def one(number):\n    return helper(number)\nreturn list(map(one, numbers))\n"),
    ],
)
def test_a_body_is_joined_to_its_stub(text: str) -> None:
    assert floors(text) == [1, -1]


@pytest.mark.parametrize("text", ["", "   \n", "I cannot do that.", "Sorry", "<think>hm</think>"])
def test_a_reply_without_code_stays_one(text: str) -> None:
    assert code_from_reply(CASE, text).code is None


def test_a_function_of_another_name_is_not_taken_for_a_body() -> None:
    found = code_from_reply(CASE, fenced("def flors(numbers):\n    return [1]\n"))
    assert found.code is not None
    assert "def floors" not in found.code


def test_without_a_stub_the_code_is_taken_as_it_was_found() -> None:
    case = Case(id="f", prompt="p", language="python", verify=Verify(entry_point="floors"))
    assert code_from_reply(case, f"Well:\n{fenced(FUNCTION)}").code == FUNCTION


@pytest.mark.parametrize(
    "code",
    [
        BODY,
        "x = '''\n```python\nfenced\n```\n'''",
        "x = 1\n\n\n",
        "x = '<think>'\n</think>\ny = 1\r\n",
        "    return 1\n\nThat is all.",
        "`````",
        "\ufeffx = 1\x00",
    ],
)
def test_marked_code_comes_back_to_the_letter(code: str) -> None:
    assert verbatim_code(verbatim_reply(code, "python")) == code
    assert code_from_reply(CASE, verbatim_reply(code, "python")).code == code


@pytest.mark.parametrize(
    "text", ["", "verbatim", fenced(BODY), "```python verbatim\nx = 1\n", "```python verbatim\nx\n```", " verbatim\n\n"]
)
def test_a_reply_is_not_taken_for_marked_code(text: str) -> None:
    assert verbatim_code(text) is None


def test_a_long_reply_is_stitched_in_time_that_grows_with_its_length() -> None:
    for text in ("    x\n" * 200_000, "(" * 500_000, "return " * 100_000, "`" * 500_000, "@\n" * 200_000):
        code_from_reply(CASE, text)


RUST_STUB = "use std::collections::HashMap;\n\nfn counted(words: &[&str]) -> HashMap<String, usize> {\n"
RUST_CASE = Case(id="r", prompt="p", language="rust", verify=Verify(stub=RUST_STUB, entry_point="counted"))


def test_a_rust_function_gets_the_stubs_imports_only_when_it_has_none() -> None:
    function = "fn counted(words: &[&str]) -> HashMap<String, usize> {\n    HashMap::new()\n}\n"
    assert code_from_reply(RUST_CASE, fenced(function, "rust")).code == f"use std::collections::HashMap;\n\n{function}"
    own = f"use std::collections::HashMap;\n{function}"
    assert code_from_reply(RUST_CASE, fenced(own, "rust")).code == own


def test_a_rust_body_is_joined_to_its_stub() -> None:
    body = "    HashMap::new()\n}\n"
    assert code_from_reply(RUST_CASE, fenced(body, "rust")).code == RUST_STUB + body
