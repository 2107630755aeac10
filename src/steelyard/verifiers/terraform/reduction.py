"""A module cut down to one block, so that no other block can hide what Terraform would say of it.

Terraform skips a block that refers to something with an error in it. Which arguments a block may hold and must hold does
not depend on their values: so the other blocks are removed, and what the block takes from them becomes an unknown value.
Lines keep their numbers, and a diagnostic can be found again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from steelyard.records import Target
from steelyard.verifiers.terraform.diagnostics import TerraformDiagnostic
from steelyard.verifiers.terraform.module import HCL_SUFFIXES, REFERENCE_CHAIN, ModuleSources, referenced_name
from steelyard.verifiers.terraform.stages import BLOCK_BODY_ERRORS, PROVIDER_SCHEMA_BLOCKS

UNKNOWN_VALUE_NAME = "steelyard_unknown_value"
"""A variable without a value or a type: it fits everywhere."""
UNKNOWN_VALUE_FILE = f"{UNKNOWN_VALUE_NAME}.tf"
KEPT_BLOCKS = ("terraform", "provider", "variable")
"""Blocks that a reduced module keeps as they are: what they say is needed to read any block."""
REDUCIBLE_BLOCKS = (*PROVIDER_SCHEMA_BLOCKS, "module")
"""Blocks whose arguments Terraform checks only after all that they refer to."""
DYNAMIC_BLOCK = "dynamic"
"""A block in a block that is there or not depending on a value."""
REST_OF_REFERENCE = re.compile(r"(?:\s*\.\s*(?:[^\W\d][\w-]*|\d+|\*)|\[[^\[\]\n]*\])*")


def reducible_block(sources: Mapping[str, str], target: Target) -> str:
    """The address of the block that a target is in; empty if a smaller module would prove nothing about it."""
    module = ModuleSources(sources)
    place = TerraformDiagnostic(
        severity="", summary="", file=posixpath.normpath(target.file or ""), line_start=target.line_start
    )
    home = module.home(place)
    is_reducible = (
        BLOCK_BODY_ERRORS.match(target.summary) is not None
        and home.block.partition(".")[0] in REDUCIBLE_BLOCKS
        and not home.directory
        and home.item != DYNAMIC_BLOCK
        and f"variable.{UNKNOWN_VALUE_NAME}" not in module.definitions("")
    )
    return home.block if is_reducible else ""


def reduced_files(sources: Mapping[str, str], address: str) -> dict[str, str]:
    """The files that change where a module is cut down to the block with this address."""
    module = ModuleSources(sources)
    reduced = {
        name: _reduced_file(module, name, address)
        for name in module.sources
        if not posixpath.dirname(name) and name.endswith(HCL_SUFFIXES)
    }
    return {**reduced, UNKNOWN_VALUE_FILE: f'variable "{UNKNOWN_VALUE_NAME}" {{}}\n'}


def _reduced_file(module: ModuleSources, file: str, address: str) -> str:
    lines = list(module.lines(file))
    for block in module.blocks(file):
        place = slice(block.line_start - 1, block.line_end)
        if block.address == address:
            lines[place] = _without_references(module, "\n".join(lines[place])).split("\n")
        elif block.kind not in KEPT_BLOCKS:
            lines[place] = [""] * (block.line_end - block.line_start + 1)
    return "\n".join(lines)


def _without_references(module: ModuleSources, text: str) -> str:
    """The lines of a block with an unknown value in place of every reference to other blocks."""
    known = module.definitions("")
    parts, position = [], 0
    for chain in REFERENCE_CHAIN.finditer(text):
        name = referenced_name(chain[0])
        if chain.start() < position or name not in known or name.partition(".")[0] in KEPT_BLOCKS:
            continue
        rest = REST_OF_REFERENCE.match(text, chain.end())
        end = rest.end() if rest else chain.end()
        # a reference over several lines leaves its line breaks behind, for the numbers of the lines
        parts += [
            text[position : chain.start()],
            f"var.{UNKNOWN_VALUE_NAME}",
            "\n" * text.count("\n", chain.start(), end),
        ]
        position = end
    return "".join([*parts, text[position:]])
