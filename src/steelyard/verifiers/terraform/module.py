"""The files of a module seen together: what stands where, and what refers to what."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from steelyard.verifiers.terraform.diagnostics import TerraformDiagnostic
from steelyard.verifiers.terraform.source import TerraformBlock, TerraformBlockItem, terraform_blocks

HCL_SUFFIXES = (".tf", ".tofu")
"""Files that hold blocks; what is written as JSON counts as outside of all blocks."""
REFERENCE_CHAIN = re.compile(r"(?<![\w-])[^\W\d][\w-]*+(?:\s*+\.\s*+[^\W\d][\w-]*+){1,2}+")
ARGUMENT_NAME = re.compile(r"\s*([^\W\d][\w-]*)\s*[={]")
LOCAL_MODULE_SOURCE = re.compile(r'(?m)^\s*(?:module\b.*\{\s*)?source\s*=\s*"(\.[^"\n]*)"')
PROVIDER_DEPENDENT_BLOCKS = ("resource", "data", "module")


class TerraformLocation(NamedTuple):
    """Where in a module something stands."""

    directory: str
    """The folder of the module that the file belongs to; empty for the module that was validated."""
    file: str
    """Empty where no file can be named."""
    block: str
    """The address of the block; empty outside of all blocks."""
    item: str
    """The argument or block directly in it; empty on the block's own lines."""
    argument: str
    """What is set on the very line, at any depth; empty if a line sets nothing."""

    @property
    def name(self) -> str:
        """Its name in the module: a local value has its own, independent of the block it is in."""
        return f"local.{self.item}" if self.block == "locals" and self.item else self.block


class TerraformDefinition(NamedTuple):
    """Some lines of a file that say what a name means."""

    file: str
    line_start: int
    line_end: int
    items: tuple[TerraformBlockItem, ...]


class ModuleSources:
    """The sources of a module and of the modules it calls, by file."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.sources = {posixpath.normpath(file): source for file, source in sources.items()}
        self._blocks: dict[str, tuple[TerraformBlock, ...]] = {}

    def blocks(self, file: str) -> tuple[TerraformBlock, ...]:
        """The blocks of one file."""
        if file not in self._blocks:
            self._blocks[file] = (
                terraform_blocks(self.sources[file]) if file.endswith(HCL_SUFFIXES) and file in self.sources else ()
            )
        return self._blocks[file]

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        return {file: source.split("\n") for file, source in self.sources.items()}

    def block(self, file: str, line: int | None) -> TerraformBlock | None:
        """The block that a line is part of."""
        found = self.blocks(file)
        place = bisect_right(found, line or 0, key=lambda block: block.line_start) - 1
        return found[place] if place >= 0 and line and line <= found[place].line_end else None

    def lines(self, file: str) -> list[str]:
        """The lines of a file; none when there is no such file."""
        return self._lines.get(file, [])

    def text(self, file: str, line_start: int, line_end: int) -> str:
        """Some lines of a file; what the file does not have is empty."""
        return "\n".join(self.lines(file)[line_start - 1 : line_end])

    def home(self, diagnosis: TerraformDiagnostic) -> TerraformLocation:
        """Where a diagnostic of this module stands."""
        file, line = diagnosis.file, diagnosis.line_start
        block = self.block(file, line)
        if block is None or line is None:
            return TerraformLocation(posixpath.dirname(file), file, "", "", "")
        items = [item for item in block.items if item.line_start <= line <= item.line_end]
        set_here = ARGUMENT_NAME.match(self.text(file, line, line)) if items else None
        item = items[0].name if items else ""
        return TerraformLocation(posixpath.dirname(file), file, block.address, item, set_here[1] if set_here else item)

    @cached_property
    def _definitions(self) -> dict[str, dict[str, list[TerraformDefinition]]]:
        found: dict[str, dict[str, list[TerraformDefinition]]] = defaultdict(lambda: defaultdict(list))
        for file in self.sources:
            names = found[posixpath.dirname(file)]
            for block in self.blocks(file):
                names[block.address].append(TerraformDefinition(file, block.line_start, block.line_end, block.items))
                if block.address == "locals":
                    for item in block.items:
                        names[f"local.{item.name}"].append(
                            TerraformDefinition(file, item.line_start, item.line_end, ())
                        )
        return found

    def definitions(self, directory: str) -> Mapping[str, list[TerraformDefinition]]:
        """What the files of one folder define, by name: addresses of blocks, and `local.NAME` for local values."""
        return self._definitions.get(directory, {})

    def block_texts(self, directory: str, name: str) -> list[str]:
        """The lines of everything in one folder that has this name."""
        return [
            self.text(found.file, found.line_start, found.line_end)
            for found in self.definitions(directory).get(name, ())
        ]

    @cached_property
    def called(self) -> frozenset[str]:
        """The folders of the modules that the validated one calls, directly or not."""
        found: set[str] = set()
        waiting = [""]
        while waiting:
            directory = waiting.pop()
            for name, definitions in self.definitions(directory).items():
                for file, first, last, _ in definitions if name.startswith("module.") else ():
                    source = LOCAL_MODULE_SOURCE.search(self.text(file, first, last))
                    child = posixpath.normpath(posixpath.join(directory, source[1])) if source else ""
                    if source and child not in found:
                        found.add(child)
                        waiting.append(child)
        return frozenset(found)

    def upstream(self, directory: str, name: str) -> frozenset[str]:
        """The names that this one needs, directly or not; a name that is only mentioned in a comment may be among them."""
        known = self.definitions(directory)
        providers = [other for other in known if other.startswith("provider.")]
        found: set[str] = set()
        waiting = [name]
        while waiting:
            here = waiting.pop()
            needed = list(providers) if here.partition(".")[0] in PROVIDER_DEPENDENT_BLOCKS else []
            for text in self.block_texts(directory, here):
                needed += {referenced_name(chain[0]) for chain in REFERENCE_CHAIN.finditer(text)}
            for other in needed:
                if other in known and other not in found:
                    found.add(other)
                    waiting.append(other)
        return frozenset(found)


def referenced_name(chain: str) -> str:
    """The name that an expression such as `var.region` or `data.aws_ami.base` speaks of."""
    parts = [part.strip() for part in chain.split(".")]
    kind = {"var": "variable", "local": "local", "module": "module", "data": "data"}.get(parts[0])
    if kind is None:
        return f"resource.{parts[0]}.{parts[1]}"
    return ".".join([kind, *parts[1 : 3 if kind == "data" else 2]])
