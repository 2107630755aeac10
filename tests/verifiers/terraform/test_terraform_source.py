"""Blocks are found where they stand, one is replaced without touching the rest, and repairs lose only their wrapping."""

from __future__ import annotations

import random
import re

import pytest

from steelyard.verifiers.terraform.source import TerraformBlockItem, repair_text, terraform_blocks, with_block_replaced


def places(source: str) -> list[tuple[str, int, int]]:
    return [(block.address, block.line_start, block.line_end) for block in terraform_blocks(source)]


EVERYTHING = """\
# resource "no" "comment" {
terraform {
  required_version = ">= 0.13" // }
}
/* variable "no" {
*/ provider "aws" {
  region = "eu"
}
variable "region" { default = "eu" }
locals {
  brace = "}"
  nested = "a ${var.region == "}" ? "{" : "\\"}"} b"
  escaped = "$${ %%{ \\\\"
  directive = "%{ if true }{%{ endif }"
}
data "aws_ami" "base" {
  filter {
    name = "x"
    values = [
      "}", # }
    ]
  }
}
resource "aws_instance" "web" {
  user_data = <<EOF
}
resource "no" "heredoc" {
  ${jsonencode({ a = <<-INNER
    }
    INNER
  })}
EOF
  script = <<-"no heredoc"
\ttags = {
    a = 1
  }
}
module m {
  source = "./m"
}
output "o" {
  value = <<-END-OF_IT
    END
    END-OF_IT
}
"""


def test_every_kind_of_block_is_found_by_its_address_and_lines() -> None:
    assert places(EVERYTHING) == [
        ("terraform", 2, 4),
        ("provider.aws", 6, 8),
        ("variable.region", 9, 9),
        ("locals", 10, 15),
        ("data.aws_ami.base", 16, 23),
        ("resource.aws_instance.web", 24, 37),
        ("module.m", 38, 40),
        ("output.o", 41, 45),
    ]


def test_a_block_knows_the_arguments_and_blocks_in_it() -> None:
    found = {block.address: block.items for block in terraform_blocks(EVERYTHING)}
    assert [item.name for item in found["locals"]] == ["brace", "nested", "escaped", "directive"]
    assert found["data.aws_ami.base"] == (TerraformBlockItem("filter", 17, 22, is_block=True),)
    assert found["resource.aws_instance.web"][:1] == (TerraformBlockItem("user_data", 25, 32),)
    assert found["variable.region"] == (TerraformBlockItem("default", 9, 9),)


@pytest.mark.parametrize(
    "change",
    [
        lambda source: source.replace("\n", "\r\n"),
        lambda source: f"\ufeff{source}",
        lambda source: source.replace("  ", "\t"),
        lambda source: source.rstrip("\n"),
    ],
)
def test_line_ends_tabs_and_byte_order_marks_change_nothing(change: object) -> None:
    assert callable(change)
    assert places(change(EVERYTHING)) == places(EVERYTHING)


def test_a_line_belongs_to_the_block_around_it() -> None:
    around = {
        line: [address for address, start, end in places(EVERYTHING) if start <= line <= end]
        for line in (1, 2, 9, 28, 46)
    }
    assert around == {1: [], 2: ["terraform"], 9: ["variable.region"], 28: ["resource.aws_instance.web"], 46: []}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('variable "a" {\n  default = 1\n\noutput "b" {\n}\n', [("variable.a", 1, 3), ("output.b", 4, 5)]),
        ('locals {\n  a = [1,\n}\nvariable "b" {}\n', [("locals", 1, 3), ("variable.b", 4, 4)]),
        ('locals {\n  a = "x\n}\nvariable "b" {}\n', [("locals", 1, 3), ("variable.b", 4, 4)]),
        ('}\n)\nvariable "b" {}\n', [("variable.b", 3, 3)]),
        ('variable "a"\n{\n}\n', [("variable.a", 1, 3)]),
        ("resource a {\n  x = <<EOF\n}\n", [("resource.a", 1, 3)]),
        ("locals {\n  a = 1 /* }\n}\n", [("locals", 1, 3)]),
        ("locals {", [("locals", 1, 1)]),
        ('{"resource": {"a": {"b": {}}}}', []),
        ("a = 1\nb = {\n}\n", []),
        ("", []),
    ],
)
def test_a_broken_file_yields_what_can_be_made_out(source: str, found: list[tuple[str, int, int]]) -> None:
    assert places(source) == found


def test_a_file_that_is_cut_off_anywhere_keeps_the_blocks_before_the_cut() -> None:
    whole = places(EVERYTHING)
    for cut in range(len(EVERYTHING)):
        source = EVERYTHING[:cut]
        line = source.count("\n") + 1
        complete = [place for place in whole if place[2] < line]
        assert places(source)[: len(complete)] == complete


def written(chance: random.Random) -> tuple[str, list[tuple[str, int, int]]]:
    """A file of random blocks, and where they stand."""
    lines: list[str] = []
    expected: list[tuple[str, int, int]] = []
    bodies = [
        ["  a = 1"],
        ['  b = "}{${x("}")}"', "  # }"],
        ["  c = <<-T", "    }{ ${f({})}", "  T"],
        ["  d {", "    e = [{", "    }]", "  }"],
        [],
    ]
    for number in range(chance.randrange(1, 8)):
        lines += chance.choice([[], [""], ["# }"], ["/* {", "*/"], ["// {"]])
        kind = chance.choice(["resource", "variable", "locals", "anything"])
        labels = [f"l{number}"] * {"resource": 2, "variable": 1, "locals": 0, "anything": chance.randrange(3)}[kind]
        start = len(lines) + 1
        lines.append(" ".join([kind, *(chance.choice([f'"{label}"', label]) for label in labels), "{"]))
        for _ in range(chance.randrange(4)):
            lines += chance.choice(bodies)
        lines.append("}")
        expected.append((".".join([kind, *labels]), start, len(lines)))
    return "\n".join(lines) + "\n", expected


def test_blocks_are_found_whatever_is_in_them_and_between_them() -> None:
    chance = random.Random(7)
    for _ in range(300):
        source, expected = written(chance)
        assert places(source) == expected


def test_no_source_breaks_the_scanner() -> None:
    chance = random.Random(11)
    pieces = [
        '"',
        "${",
        "%{",
        "}",
        "{",
        "[",
        "]",
        "(",
        ")",
        "<<A\n",
        "A\n",
        "\n",
        "\\",
        "/*",
        "*/",
        "#",
        "//",
        "=",
        " ",
    ]
    pieces += [
        "locals {\n",
        'resource "a" "b" {\n',
        "x",
        "1",
        "\r\n",
        "\ufeff",
        "é",
        "<",
        "```",
        "</a>",
        "<a>",
        "$${",
        "\x00",
    ]
    for _ in range(2000):
        source = "".join(chance.choices(pieces, k=chance.randrange(40)))
        last = source.count("\n") + 1
        found = terraform_blocks(source)
        assert all(1 <= block.line_start <= block.line_end <= last for block in found)
        assert [block.line_start for block in found] == sorted(block.line_start for block in found)
        assert all(block.line_start <= item.line_start <= item.line_end for block in found for item in block.items)
        repair_text(source)


HOSTILE = [
    "(",
    "{",
    "}",
    '"',
    'a="${',
    "<<A\n",
    "<<A\n${",
    "/*",
    "<",
    "a {}\n",
    'resource "a" "b" {\n',
    "\n ",
    "a.b",
    "= =",
]
HOSTILE_WRAPPINGS = ["`", "```\n", "~~~", "<a>", "<a ", "</a>", "<![CDATA[", "<think>", "\\", "$"]


@pytest.mark.parametrize("piece", [*HOSTILE, *HOSTILE_WRAPPINGS])
def test_a_hostile_source_is_read_to_its_end(piece: str) -> None:
    source = piece * (50_000 // len(piece))
    terraform_blocks(source)
    repair_text(f"{source}x")


# ---- replacing


def test_only_the_lines_in_question_change() -> None:
    source = 'variable "a" {}\n\n\nlocals {\n  b = 1 \n}\t\n# end'
    assert with_block_replaced(source, 4, 6, "locals {}\n") == 'variable "a" {}\n\n\nlocals {}\n# end'
    assert with_block_replaced(source, 7, 7, "# bye\n") == source.replace("# end", "# bye")
    assert with_block_replaced("a = 1\r\n\r\nb", 3, 3, "c\nd\n") == "a = 1\r\n\r\nc\r\nd"
    assert with_block_replaced("\ufeffa = 1\n", 1, 1, "b = 2") == "\ufeffb = 2\n"


def test_lines_that_are_replaced_by_themselves_leave_the_file_as_it_was() -> None:
    chance = random.Random(3)
    for ending in ("\n", "\r\n"):
        for _ in range(200):
            lines = [chance.choice(["", "a", " b ", "\u2028", "x\ry", "\f"]) for _ in range(chance.randrange(1, 9))]
            source = ending.join(lines) + chance.choice(["", ending])
            count = len(re.findall(r"[^\n]*\n|[^\n]+", source))
            if not count:
                continue
            first = chance.randrange(1, count + 1)
            last = chance.randrange(first, count + 1)
            same = "".join(re.findall(r"[^\n]*\n|[^\n]+", source)[first - 1 : last])
            assert with_block_replaced(source, first, last, same) == source


@pytest.mark.parametrize(("first", "last"), [(0, 1), (2, 1), (-1, -1), (1, 4), (4, 4)])
def test_lines_that_are_not_there_cannot_be_replaced(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="lines"):
        with_block_replaced("a\nb\nc\n", first, last, "x")


# ---- repairs

CODE = "locals {\n  a = 1\n}\n"
TRICKY = """\
resource "a" "b" {
  page = <<EOF
```hcl
<answer>
<![CDATA[ ]]>
```
</answer>
</fixed_code>
EOF
}
"""
WRAPPINGS = [
    "```\n%s```\n",
    "```hcl\n%s```\n",
    "~~~ terraform\n%s\n~~~\n",
    "<fixed_code>\n%s</fixed_code>\n",
    '<answer lang="hcl">%s</answer>\n',
    "<![CDATA[%s]]>\n",
    "\n\n%s\n\n",
]
AROUND = [
    "Here is the fix:\n\n%s\n\nI hope this helps!",
    "<thinking>Is `locals {}` right?</thinking>\n%s",
    "<explanation>The value was wrong.</explanation>\n%s\nDone.",
]


@pytest.mark.parametrize("code", [CODE, TRICKY])
def test_what_is_around_the_code_goes_and_what_is_in_it_stays(code: str) -> None:
    chance = random.Random(5)
    for _ in range(200):
        text = code
        for wrapping in chance.sample(WRAPPINGS, k=chance.randrange(4)):
            text = wrapping % text
        assert repair_text(text).strip() == code.strip(), text
        if text != code:
            around = chance.choice(AROUND) % text
            assert repair_text(around).strip() == code.strip(), around


@pytest.mark.parametrize("code", [CODE, TRICKY, '  ami = "x"\n', "\ufefflocals {}\r\n", "# nothing\n", ""])
def test_plain_terraform_is_handed_back_to_the_letter(code: str) -> None:
    assert repair_text(code) == code


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("```hcl\nlocals {\n", "locals {\n"),
        ("<fixed_code>\nlocals {\n", "locals {\n"),
        (f"{CODE}```", CODE),
        (f"{CODE}</fixed_code>", CODE),
        (f"<original_code>\nlocals {{}}\n</original_code>\n<fixed_code>\n{CODE}</fixed_code>", CODE),
        (f"Sure: {CODE}", f"Sure: {CODE}"),
        (f"Sure:\n{CODE}", CODE),
        ('```hcl\nlocals {}\n```\nand\n```hcl\nvariable "x" {}\n```', 'locals {}\n\nvariable "x" {}\n'),
        ("<code>locals {{{</code>", "locals {{{\n"),
    ],
)
def test_a_wrapping_of_which_half_is_missing_goes_as_well(raw: str, code: str) -> None:
    assert repair_text(raw) == code


@pytest.mark.parametrize("raw", ["```hcl\n```", "<fixed_code></fixed_code>", "<![CDATA[]]>", " \n"])
def test_a_repair_that_holds_nothing_is_blank(raw: str) -> None:
    assert not repair_text(raw).strip()
