"""The table of languages, and a case's verification made from a row of it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from steelyard.errors import InputError
from steelyard.records import Case

END_PLACEHOLDER = "STEELYARD_END_OF_TESTS"
"""The placeholder for the secret that tests print last, in a file of a case."""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `languages.toml`, which says what each field means."""

    name: str
    fence: str
    answer: str
    tests: str
    timeout_secs: int
    test: str
    suffixes: tuple[str, ...] = ()
    multipl_e: str = ""
    human_eval_pack: str = ""
    files: dict[str, str] = {}
    head: str = ""
    between: str = ""
    last: str = ""
    end: str = ""
    library: str = ""
    needs: str = ""
    links: dict[str, str] = {}
    compiled: bool = False
    comment: str = r"//[^\n]*|/\*[\s\S]*?\*/"
    quotes: str = '"'
    truth: tuple[str, str] = ("true", "false")
    equal: str = ""
    same: str = ""
    asserts: str = ""
    values: str = ""

    @property
    def end_line(self) -> str:
        """The line of code that prints the placeholder."""
        texts = (self.end, *self.files.values())
        return next(line.strip(" \t;") for text in texts for line in text.split("\n") if END_PLACEHOLDER in line)

    def verify(self, tests: str, *, prompt: str, program: str = "") -> dict[str, Any]:
        """How a case verifies an answer with these tests; `program` is code that is known to be linked with them."""
        files = {self.tests: f"\n{self.between}{self._ended(tests)}", **self.files}
        if self.head:
            lines = re.findall(self.head, prompt, re.MULTILINE)
            files[f"head{PurePosixPath(self.answer).suffix}"] = "".join(dict.fromkeys(lines))
        links = "".join(option for included, option in self.links.items() if included in prompt + program)
        loaded = re.findall(self.library, "\n".join(files.values()), re.MULTILINE) if self.library else []
        needs = " && ".join(self.needs.replace("{library}", library) for library in dict.fromkeys(loaded))
        return {
            "kind": "command",
            "answer": self.answer,
            "files": files,
            "test": self.test.replace("{links}", links),
            **({"needs": needs} if needs else {}),
        }

    def _ended(self, tests: str) -> str:
        """Tests that tell their end."""
        if not self.last:
            return f"{tests}\n{self.end}"
        found = re.search(rf"{self.last}\s*\Z", tests)
        if found is None:
            raise InputError(f"nothing tells the end of its tests: in {self.name} they end with {self.last}")
        return f"{tests[: found.start()]}\n{self.end}"


@cache
def languages() -> dict[str, Language]:
    """The languages by what the file of an answer ends in."""
    return msgspec.toml.decode(Path(__file__).with_name("languages.toml").read_bytes(), type=dict[str, Language])


@cache
def languages_by_suffix() -> dict[str, Language]:
    """The languages by all that their files may end in."""
    return {suffix: each for name, each in languages().items() for suffix in (name, *each.suffixes)}


def language_of(case: Case) -> Language | None:
    """The language of the answers to a case, where we know it: by the name of their file, or as the case calls it."""
    known = languages()
    by_file = languages_by_suffix().get(PurePosixPath(case.verify.answer).suffix[1:])
    name = case.language or case.kind
    return by_file or next((each for each in known.values() if name in (each.fence, each.name.lower())), None)


def languages_of(benchmark: str) -> dict[str, Language]:
    """The languages of a benchmark, such as `multipl_e`, by their names in it."""
    return {getattr(each, benchmark): each for each in languages().values() if getattr(each, benchmark)}
