"""The code in a model's reply is found wherever models put it, and left as they wrote it."""

import random
from collections.abc import Sequence

import pytest

from steelyard.verifiers.code.extract import ExtractedCode, extract
from support.studies import with_slow

F = "def f(x):\n    return x\n"
G = "def g(x):\n    return f(x) + 1\n"
BETTER_F = "def f(x):\n    return x * 1\n"
USAGE = "print(f(3))\n"
RUST = "pub fn f(x: i32) -> i32 {\n    x\n}\n"
STRUCT = "pub struct Stack {\n    items: Vec<i32>,\n}\n"
IMPL = "impl Stack {\n    pub fn new() -> Self {\n        Stack { items: vec![] }\n    }\n}\n"

CUT = "cut('<think>', '</think>')\n"
THOUGHT = 's = """\n<think>\nx\n</think>\n"""\n'


def fence(code: str, info: str = "", mark: str = "```") -> str:
    return f"{mark}{info}\n{code}{mark}\n"


def indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


BROKEN = "def f(x):\n    if x:\n        return 1\n    oh no\n"

ONE_BLOCK: dict[str, tuple[str, str, str | None]] = {
    # labels
    "label-exact": (fence(F, "python"), "python", F),
    "label-version": (fence(F, "python3"), "python", F),
    "label-capital": (fence(F, "Python"), "python", F),
    "label-short": (fence(F, "py"), "python", F),
    "label-ipython": (fence(F, "ipython"), "python", F),
    "label-after-blank": (fence(F, " python"), "python", F),
    "label-with-title": (fence(F, 'py title="x.py"'), "python", F),
    "label-with-braces": (fence(F, "{.python .numberLines}"), "python", F),
    "label-rmarkdown": (fence(F, "{python, echo=FALSE}"), "python", F),
    "label-with-comma": (fence(RUST, "rust,ignore"), "rust", RUST),
    "label-file-name": (fence(RUST, "src/lib.rs"), "rust", RUST),
    "label-colon-file": (fence(F, "python:main.py"), "python", F),
    "label-only-attribute": (fence(F, 'title="x.py"'), "python", F),
    "label-none": (fence(F), "python", F),
    "label-none-any-language": (fence(F), "", F),
    "label-wrong": (fence(F, "text"), "python", F),
    # fences
    "prose-around": (f"Sure!\n\n{fence(F, 'python')}\nHope it helps.", "python", F),
    "tildes": (fence(F, "python", "~~~"), "python", F),
    "byte-order-mark-in-the-block": (fence(f"\ufeff{F}", "python"), "python", F),
    "block-in-a-quotation": ("As asked:\n\n" + indented(fence(F, "python"), "> "), "python", F),
    "quotation-before-a-block": (f"> ```\n> old\n> ```\n\n{fence(F, 'python')}", "python", F),
    "tildes-around-backticks": (fence("```\n", "md", "~~~"), "markdown", "```\n"),
    "four-backticks": (
        fence(f'"""\n{fence("x")}"""\n{F}', "python", "````"),
        "python",
        f'"""\n```\nx```\n"""\n{F}',
    ),
    "inner-fence-with-label-closes-nothing": (
        "```python\nx = '''\n```python\n'''\n```\n",
        "python",
        "x = '''\n```python\n'''\n",
    ),
    "longer-closing-fence": (f"```python\n{F}`````\nafter", "python", F),
    "shorter-closing-fence": (f"````python\n{F}```\n````\n", "python", f"{F}```\n"),
    "closing-fence-with-blanks": (f"```python\n{F}```  \t\nafter", "python", F),
    "closing-fence-by-three": (f"```python\n{F}   ```\nafter", "python", F),
    "no-closing-fence-by-four": (
        "```python\nx = '''\n    ```\n'''\n```\n",
        "python",
        "x = '''\n    ```\n'''\n",
    ),
    "other-mark-closes-nothing": ("```md\n~~~\n```\n", "markdown", "~~~\n"),
    "list-item": ("1. Do this:\n\n" + indented(fence(F, "python"), "   "), "python", F),
    "list-item-deep": ("- a\n  - b\n" + indented(fence(F, "python"), "      "), "python", F),
    "list-item-tabs": ("- a\n" + indented(fence(F, "python"), "\t"), "python", F),
    "list-item-same-line": ("- ```python\n" + indented(F + "```\n", "  "), "python", F),
    "list-item-code-outdented": (f"  ```python\n{F}  ```\n", "python", F),
    "indentation-of-code-kept": ("```python\n    x = 1\n```\n", "python", "    x = 1\n"),
    "blank-lines-kept": ("```python\n\nx = 1\n\n```\n", "python", "\nx = 1\n\n"),
    "unclosed": (f"Here:\n```python\n{F}", "python", F),
    "unclosed-mid-line": ("```python\ndef f(x):\n    ret", "python", "def f(x):\n    ret\n"),
    "closed-on-last-line": ("```python\nx = f(1)```", "python", "x = f(1)\n"),
    "prompt-opened-the-fence": (f"{F}```\nThis returns x.", "python", F),
    "prompt-opened-the-fence-rust": (f"{RUST}```\n", "rust", RUST),
    "markdown-around": (fence(f"# T\n\n{fence(F, 'python')}", "markdown", "````"), "python", F),
    "plain-fence-around": (fence(fence(F, "python"), "", "````"), "python", F),
    "inline-code-is-no-block": (f"Use ```f``` so:\n{fence(F, 'python')}", "python", F),
    "inline-code-starting-a-line": (f"```f``` it is:\n{fence(F, 'python')}", "python", F),
    "empty": ("```python\n```\n", "python", None),
    "empty-but-blank": ("Here:\n```python\n  \n\n```\nThat is def f(x).", "python", None),
    "unclosed-empty": ("Here is the code:\n```python", "python", None),
    "carriage-returns": (fence(F, "python").replace("\n", "\r\n"), "python", F),
    "byte-order-mark": ("\ufeff" + fence(F, "python"), "python", F),
    "byte-order-mark-bare": ("\ufeff" + F, "python", F),
    "unicode": (fence("größe = '🦀\u2028\x0c'\n", "python"), "python", "größe = '🦀\u2028\x0c'\n"),
    # thinking
    "think": (f"<think>\n{fence(G, 'python')}</think>\n{fence(F, 'python')}", "python", F),
    "thinking": (f"<thinking>hm</thinking>{fence(F, 'python')}", "python", F),
    "reasoning-capital": (f"<Reasoning>hm</Reasoning>\n{fence(F, 'python')}", "python", F),
    "think-bare-answer": (f"<think>\nhm\n</think>\n\n{F}", "python", F),
    "think-unclosed": (f"<think>\n{fence(F, 'python')}and so", "python", None),
    "think-only": ("<think>\nx = 1\n</think>\n", "python", None),
    "think-close-alone": (f"{fence(G, 'python')}Yes.\n</think>\n{fence(F, 'python')}", "python", F),
    "think-close-alone-in-open-fence": (
        f"```python\n{G}\n</think>\n{fence(F, 'python')}",
        "python",
        F,
    ),
    "think-closed-once-too-often": (
        f"{fence(G, 'python')}<think>a</think> b\n</think>\n{fence(F, 'python')}",
        "python",
        F,
    ),
    "think-fence-left-open": (
        f"<think>\n```python\n{G}</think>\n{fence(F, 'python')}",
        "python",
        F,
    ),
    "think-nested": (
        f"<think><think>a</think>{fence(G, 'python')}</think>\n{fence(F, 'python')}",
        "python",
        F,
    ),
    "think-opened-twice": (f"<think>a <think> tag\n</think>\n{fence(F, 'python')}", "python", F),
    "think-twice": (
        f"<think>a</think>\n{fence(F, 'python')}<think>{fence(G, 'python')}</think>\nDone.",
        "python",
        F,
    ),
    "think-after-the-answer": (f"{fence(F, 'python')}<think>or rather", "python", F),
    "think-mentioned-in-prose": (f"This drops <think> tags:\n{fence(F, 'python')}", "python", F),
    "think-quoted-in-prose": (f"{fence(F, 'python')}Up to `</think>` it is.", "python", F),
    "think-in-code": (fence(CUT, "python"), "python", CUT),
    "think-in-string": (fence(THOUGHT, "python"), "python", THOUGHT),
    "think-in-bare-code": (CUT, "python", CUT),
    # tags
    "code-tag": (f"Here:\n<code>\n{F}</code>\nDone.", "python", F),
    "code-tag-with-language": (
        f'<pre><code class="language-rust">{RUST}</code></pre>',
        "rust",
        RUST,
    ),
    "python-tag": (f"<python>\n{F}</python>", "python", F),
    "cdata": (f"<code><![CDATA[\n{F}]]></code>", "python", F),
    "cdata-holding-tags": ("<code><![CDATA[a('</code>')]]></code>", "python", "a('</code>')\n"),
    "cdata-unclosed": (f"<![CDATA[\n{F}", "python", F),
    "answer-tag": (f"I think so.\n<answer>\n{F}</answer>", "python", F),
    "answer-tag-around-fence": (f"<answer>{fence(F, 'python')[:-1]}</answer>", "python", F),
    "answer-tag-around-prose": ("<answer>It is forty two.</answer>", "python", None),
    "code-tag-unclosed": (f"<code>\n{F}", "python", F),
    "code-tag-empty": ("<code></code>", "python", None),
    # bare code
    "bare": (F, "python", F),
    "bare-any-language": (F, "", F),
    "bare-blank-lines": (f"\n\n{F}\n\n", "python", F),
    "bare-expression": ("sorted(x)[::-1]", "python", "sorted(x)[::-1]\n"),
    "bare-with-fence-in-docstring": (
        f'"""Doc.\n\n```\nf(1)\n```\n"""\n{F}',
        "python",
        f'"""Doc.\n\n```\nf(1)\n```\n"""\n{F}',
    ),
    "bare-after-prose": (f"Here is the function you want:\n\n{F}", "python", F),
    "bare-before-prose": (f"{F}\nIt's a function (of x).", "python", F),
    "bare-that-does-not-parse-amid-prose": (f"Sure!\n\n{BROKEN}\nDone.", "python", BROKEN),
    "lone-fence-behind-code-that-does-not-parse": (f"{BROKEN}```\n", "python", BROKEN),
    "bare-amid-prose": (f"Sure!\n\nimport os\n\n{F}\nEnjoy", "python", f"import os\n\n{F}"),
    "bare-with-warning": (
        "import re\nre.match('\\d', x)\n",
        "python",
        "import re\nre.match('\\d', x)\n",
    ),
    "bare-broken-is-not-mended": (BROKEN, "python", BROKEN),
    "bare-rust": (RUST, "rust", RUST),
    "bare-rust-amid-prose": (f"Here you are:\n\n{RUST}\nThis returns x (unchanged).", "rust", RUST),
    "bare-rust-attribute": (f"#[inline]\n{RUST}", "rust", f"#[inline]\n{RUST}"),
    "bare-go": ("package p\n\nfunc F() {\n}\n", "go", "package p\n\nfunc F() {\n}\n"),
    "bare-c": ("int f(int x) {\n    return x;\n}\n", "c", "int f(int x) {\n    return x;\n}\n"),
    "bare-hcl": ('variable "a" {\n}\n', "terraform", 'variable "a" {\n}\n'),
    "bare-shell": ("#!/bin/sh\necho hi\n", "bash", "#!/bin/sh\necho hi\n"),
    "bare-sql": ("SELECT a\nFROM b;\n", "sql", "SELECT a\nFROM b;\n"),
    # no code
    "nothing": ("", "python", None),
    "blank": (" \n\t\n", "python", None),
    "prose": ("I cannot help with that.", "python", None),
    "prose-that-parses": ("this is fine", "python", None),
    "prose-one-word": ("Sorry", "python", None),
    "prose-annotation": ("Answer: yes", "python", None),
    "prose-heading": ("# Solution", "python", None),
    "prose-rust": ("Let me explain how a struct works.\n\nUse an enum instead.", "rust", None),
    "prose-rust-lower": ("let me know what you use it for\n", "rust", None),
    "prose-any-language": ("for example, I would use a list", "", None),
    # sessions are taken only for want of anything better
    "session-alone": (fence(">>> f(1)\n1\n", "python"), "python", ">>> f(1)\n1\n"),
}


@pytest.mark.parametrize(("reply", "language", "code"), ONE_BLOCK.values(), ids=list(ONE_BLOCK))
def test_the_code_of_a_reply_is_found_as_it_was_written(reply: str, language: str, code: str | None) -> None:
    assert extract(reply, language).code == code


@pytest.mark.parametrize(
    ("label", "language"),
    [
        *(("py", "python"), ("python3", "py"), ("ipython", "python3"), ("rs", "rust")),
        *(("ts", "typescript"), ("tsx", "ts"), ("js", "javascript"), ("node", "js")),
        *(("go", "golang"), ("golang", "go"), ("c", "C"), ("c++", "cpp"), ("cpp", "c++")),
        *(
            ("tf", "hcl"),
            ("terraform", "tf"),
            ("hcl", "terraform"),
            ("sh", "bash"),
            ("zsh", "shell"),
        ),
        *(("zig", "zig"), ("Zig", "zig"), ("c#", "csharp")),
    ],
)
def test_a_language_goes_by_many_names(label: str, language: str) -> None:
    other = fence("other\n", "elixir")
    assert extract(other + fence("mine\n", label) + other, language).code == "mine\n"


Blocks = Sequence[tuple[str, str]]
PY = "python"
IMPORT = "import os\nfrom typing import (\n    List,\n)\n"
USES_IMPORT = "def f(x: List) -> str:\n    return os.sep\n"
TEST_F = "import pytest\n\ndef test_f():\n    assert f(1) == 1\n"
GO = "package p\n\nfunc F() int {\n\treturn 1\n}\n"
GO_TYPE = "type Stack struct {\n}\n"
GO_METHOD = "func (s *Stack) Push(x int) {\n}\n"
C_NODE = "struct Node {\n    int x;\n};\n"
C_MAKE = "struct Node *make(int x) {\n    return 0;\n}\n"
JS = "const f = (x) => x;\n"

SEVERAL: dict[str, tuple[Blocks, str, Sequence[str], Sequence[int] | None]] = {
    # the numbers are those of the blocks expected, joined in order
    "usage-after": ([(PY, F), (PY, USAGE)], PY, ["f"], [0]),
    "usage-after-nothing-asked": ([(PY, F), (PY, USAGE)], PY, [], [0]),
    "usage-before": ([(PY, "y = f(2)\n" + USAGE), (PY, "def f(y):\n    return y\n")], PY, [], [1]),
    "usage-with-import": ([(PY, F), (PY, "from s import f\n" + USAGE)], PY, [], [0]),
    "usage-assigning": ([(PY, F), (PY, "result = f(1)\nprint(result)\n")], PY, [], [0]),
    "usage-javascript": ([("js", JS), ("js", "const y = f(1);\nconsole.log(y);\n")], "js", [], [0]),
    "test-after": ([(PY, F), (PY, TEST_F)], PY, ["f"], [0]),
    "test-after-nothing-asked": ([(PY, F), (PY, TEST_F)], PY, [], [0]),
    "test-after-rust": (
        [("rust", RUST), ("rust", "#[cfg(test)]\nmod tests {\n    use super::*;\n}\n")],
        *("rust", [], [0]),
    ),
    "demo-function-after": ([(PY, F), (PY, "def demo():\n    print(f(1))\n")], PY, ["f"], [0]),
    "correction": ([(PY, F), (PY, BETTER_F)], PY, ["f"], [1]),
    "correction-nothing-asked": ([(PY, F), (PY, BETTER_F)], PY, [], [1]),
    "correction-then-usage": ([(PY, F), (PY, BETTER_F), (PY, USAGE)], PY, [], [1]),
    "correction-rust": ([("rust", RUST), ("rust", "// fixed\n" + RUST)], "rust", ["f"], [1]),
    "correction-rust-mentioning-the-draft": (
        [("rust", RUST + "fn old() {}\n"), ("rust", "// no old any more\n" + RUST)],
        *("rust", ["f"], [1]),
    ),
    "correction-go-file": ([("go", GO), ("go", GO + GO_TYPE)], "go", [], [1]),
    "correction-of-one-function": (
        [(PY, F + G), (PY, "def g(x):\n    return f(x)\n")],
        PY,
        ["g"],
        [0, 1],
    ),
    "correction-complete-after-split": ([(PY, F), (PY, G), (PY, BETTER_F + G)], PY, ["g"], [2]),
    "correction-complete-after-split-rust": (
        [("rust", STRUCT), ("rust", IMPL), ("rust", STRUCT + IMPL)],
        *("rust", ["Stack"], [2]),
    ),
    "split": ([(PY, F), (PY, G)], PY, ["f", "g"], [0, 1]),
    "split-nothing-asked": ([(PY, F), (PY, G)], PY, [], [0, 1]),
    "split-then-usage": ([(PY, F), (PY, G), (PY, "print(g(1))\n")], PY, ["f", "g"], [0, 1]),
    "split-imports": ([(PY, IMPORT), (PY, USES_IMPORT)], PY, ["f"], [0, 1]),
    "split-imports-nothing-asked": ([(PY, IMPORT), (PY, USES_IMPORT)], PY, [], [0, 1]),
    "split-star-import": ([(PY, "from math import *\n"), (PY, F)], PY, ["f"], [0, 1]),
    "split-helper-asked-for-last": ([(PY, F), (PY, G)], PY, ["g"], [0, 1]),
    "split-three": (
        [(PY, IMPORT), (PY, USES_IMPORT), (PY, G), (PY, "print(g(1))\n")],
        *(PY, ["g"], [0, 1, 2]),
    ),
    "split-constant": (
        [(PY, "limit = 3\n"), (PY, "def f():\n    return limit\n")],
        PY,
        ["f"],
        [0, 1],
    ),
    "split-rust-methods": ([("rust", STRUCT), ("rust", IMPL)], "rust", ["Stack"], [0, 1]),
    "split-rust-nothing-asked": ([("rust", STRUCT), ("rust", IMPL)], "rust", [], [0, 1]),
    "split-go-methods": ([("go", GO_TYPE), ("go", GO_METHOD)], "go", ["Stack"], [0, 1]),
    "split-c": ([("c", "#include <stdio.h>\n"), ("c", C_NODE), ("c", C_MAKE)], "c", [], [0, 1, 2]),
    "split-main": (
        [("rust", RUST), ("rust", 'fn main() {\n    println!("{}", f(1));\n}\n')],
        *("rust", [], [0, 1]),
    ),
    "split-script": ([(PY, "x = 1\n"), (PY, "y = x\nprint(y)\n")], PY, [], [0, 1]),
    "split-hcl": (
        [("hcl", 'resource "a" "b" {\n}\n'), ("tf", 'resource "a" "c" {\n}\n')],
        *("terraform", [], [0, 1]),
    ),
    "name-nowhere": ([(PY, F), (PY, G)], PY, ["h"], [0, 1]),
    "method-asked-for": ([(PY, F), (PY, "class S:\n    def m(self): ...\n")], PY, ["S.m"], [1]),
    "assigned-name-asked-for": ([(PY, "f = lambda x: x\n"), (PY, USAGE)], PY, ["f"], [0]),
    "own-main-then-example-main": (
        [("rust", RUST + "fn main() {}\n"), ("rust", "fn main() {\n    f(2);\n}\n")],
        *("rust", [], [0]),
    ),
    # what is no answer
    "session-after": ([(PY, F), (PY, ">>> f(1)\n1\n")], PY, [], [0]),
    "session-before-unlabelled": ([(PY, ">>> f(1)\n1\n"), ("", F)], PY, [], [1]),
    "install-before": ([("bash", "pip install x\n"), (PY, F)], PY, [], [1]),
    "install-before-unlabelled": ([("bash", "pip install x\n"), ("", F)], PY, [], [1]),
    "install-unlabelled": ([("", "pip install x\npython main.py\n"), ("", F)], PY, [], [1]),
    "install-any-language": (
        [("bash", "pip install x\n"), (PY, F), ("output", "1\n")],
        "",
        [],
        [1],
    ),
    "dollar-prompt": ([("", "$ python x.py\n"), ("", F)], PY, [], [1]),
    "output-after": ([(PY, F), ("text", "1\n"), ("output", "2\n")], PY, [], [0]),
    "output-after-unlabelled": ([("", F), ("output", "2\n")], PY, [], [0]),
    "other-language": ([("rust", RUST), (PY, F), ("js", JS)], PY, [], [1]),
    "other-language-only": ([("bash", "ls\n"), ("rust", RUST)], PY, [], [1]),
    "unlabelled-beside-labelled": ([("", "1 2 3\n"), (PY, F), ("", "4\n")], PY, [], [1]),
    "shell-wanted": ([("text", "out\n"), ("bash", "pip install x\n")], "sh", [], [1]),
    "empty-block-beside": ([(PY, ""), (PY, F)], PY, [], [1]),
}


@pytest.mark.parametrize(("blocks", "language", "defines", "expected"), SEVERAL.values(), ids=list(SEVERAL))
def test_of_several_blocks_those_that_make_the_answer_are_taken(
    blocks: Blocks, language: str, defines: Sequence[str], expected: Sequence[int]
) -> None:
    reply = "And then:\n\n".join(fence(code, label) for label, code in blocks)
    code = "\n".join(blocks[number][1] for number in expected)
    assert extract(reply, language, defines=defines).code == code


@pytest.mark.parametrize(
    ("reply", "how"),
    [
        (fence(F, "python"), "the only python block"),
        (fence(F), "the only code block"),
        (fence(F, "python") + fence(G, "python"), "joined 2 python blocks"),
        (fence(G, "python") + fence(BETTER_F, "python") + "```py\nf(", "python block 2 of 3"),
        (f"```python\n{F}", "unclosed block"),
        (F, "whole reply"),
        (f"Here it is:\n{F}", "bare code amid prose"),
        (f"{F}```\n", "code before a lone fence"),
        ("```\n```", "empty code block"),
        ("<think>hm", "only thinking"),
        ("No.", "no code"),
        ("", "empty reply"),
    ],
)
def test_a_human_is_told_how_the_code_was_found(reply: str, how: str) -> None:
    defines = ["f"] if "block 2 of" in how else []
    found = extract(reply, "python", defines=defines).how
    assert found == ("last block that defines f" if defines else how)


MEGABYTE = 1_000_000
GROWING = "".join("`" * length + "x\n" for length in range(4, 1400))
HOSTILE: dict[str, tuple[str, str | None]] = {
    "backticks": ("`" * MEGABYTE, None),
    "backticks-and-blanks": ("` " * (MEGABYTE // 2), None),
    "tildes-in-lines": ("~~\n" * (MEGABYTE // 3), None),
    "empty-fences": ("```\n" * 60_000, None),
    "longer-and-longer-fences": ("```x\n" + GROWING, GROWING),
    "definitions-in-20k-fences": ("```py\nf=1\n```\n" * 20_000, "f=1\n"),
    "think-opened": ("<think>" * (MEGABYTE // 7), None),
    "think-closed": ("</think>" * (MEGABYTE // 8) + f"\n{fence(F)}", F),
    "think-nested": ("<think>" * 60_000 + "</think>" * 60_000 + f"\n{fence(F)}", F),
    "think-on-lines": ("<think>\n</think>\n" * 60_000 + fence(F), F),
    "think-cut-off": ("<think" * (MEGABYTE // 6), None),
    "tags-opened": ("<code>" * (MEGABYTE // 6), None),
    "tag-without-end": ("<" + "a" * MEGABYTE, None),
    "tags-without-end": ("<code " * (MEGABYTE // 6), None),
    "cdata-opened": ("<![CDATA[" * (MEGABYTE // 9), "<![CDATA[" * (MEGABYTE // 9 - 1) + "\n"),
    "blanks": (" " * MEGABYTE, None),
    "blanks-then-letter": (" " * MEGABYTE + "x", None),
    "blank-lines": ("\n" * MEGABYTE + "x", None),
    "parentheses": ("(" * MEGABYTE, None),
    "minuses": ("-" * 190_000 + "1", None),
    "sums": ("1+" * 90_000 + "1", None),
    "nulls": ("\0" * MEGABYTE, None),
    "surrogate": ("x = '\ud800'", None),
    "list-markers": ("- " * (MEGABYTE // 2), None),
    "prose-lines-like-code": ("import a b\nOh.\n" * (MEGABYTE // 15), None),
}


@pytest.mark.parametrize(("reply", "code"), HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("language", with_slow(["python"], ["rust"]))
def test_a_hostile_megabyte_is_read_like_any_other_reply(reply: str, code: str | None, language: str) -> None:
    assert extract(reply, language).code == code


@pytest.mark.parametrize(
    "pattern",
    [
        *("a", "const ", "pub(", "a:", "a, ", "let f=(", "import (", "import (\n", "x::", "impl "),
        *("func (", "typedef struct ", "} ", "a=\n", "def f\n", '"', 'extern "', "a\n", "#define "),
    ],
    ids=repr,
)
@pytest.mark.parametrize("language", with_slow(["cpp"], ["python", "rust"]))
def test_hostile_code_is_handed_on_untouched(pattern: str, language: str) -> None:
    code = pattern * (MEGABYTE // 5 // len(pattern)) + "\n"
    reply = fence(code, language) + fence(code + "fn other\n", language)
    found = extract(reply, language, defines=["nowhere"]).code
    assert found is not None
    assert found.endswith(code + "fn other\n")


def test_no_soup_of_markup_makes_it_fail_or_invent_code() -> None:
    chance = random.Random(7)
    soup = ["```", "````", "~~~", "python", "\n", "\n", "  ", "<think>", "</think>", "<code>"]
    soup += [
        "</code>",
        "<![CDATA[",
        "]]>",
        "def f(): pass",
        "x = 1",
        "Prose, then.",
        "`",
        "- ",
        "\r\n",
    ]
    for _ in range(3000):
        reply = "".join(chance.choices(soup, k=chance.randrange(30)))
        found = extract(reply, chance.choice(["python", "rust", ""]), defines=["f"])
        assert isinstance(found, ExtractedCode)
        assert found.code is None or found.code.strip()
        lines = {line.strip() for line in reply.replace("\r\n", "\n").split("\n")}
        for line in (found.code or "").split("\n"):
            assert any(line.strip() in whole for whole in lines)
