"""Which errors can keep another diagnostic from being reported.

Terraform validates in stages, and a stage that finds an error is the last one that is reached: an undeclared variable is
not found in a module with a syntax error. So a diagnostic that is no longer reported may be gone or only hidden. The stages,
and what hides what within one, were read off Terraform 0.13.5 and 1.0.3 (`internal/command/validate.go`, `configs`,
`terraform/context.go`, `lang/eval.go` of its source) and seen in their answers:

1. Reading: the parser, and the headers of blocks. It continues after an error as well as it can, and skips what
   Terraform skips.
2. Loading: what is in the blocks of the module's own files, and duplicates. All of it is reported together.
3. Modules: the same in the modules it calls, and modules that are not there.
4. Plugins: providers that are not there, and versions.
5. Inputs: arguments of module calls. Only those of one call are reported, of whichever comes first.
6. Cycles.
7. Evaluation: every output, local value, argument of a module and resource by itself, but only when all that it refers to
   could be evaluated. There is an order in this as well: references to resources and modules, then to variables and local
   values, then arguments and their values, then what a provider thinks of them. Except for the last, all that is wrong
   with one resource in one of these respects is reported together.

Where the words of a diagnostic leave its stage open, an error that may hide something is given the earliest stage, and
what may be hidden the latest: a repair is never called a success because two things have the same name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from steelyard.records import Target
from steelyard.verifiers.terraform.diagnostics import TerraformDiagnostic
from steelyard.verifiers.terraform.module import (
    HCL_SUFFIXES,
    REFERENCE_CHAIN,
    ModuleSources,
    TerraformLocation,
    referenced_name,
)


class ValidationStage(IntEnum):
    """How far a validation came."""

    READING = 1
    LOADING = 2
    MODULES = 3
    PLUGINS = 4
    INPUTS = 5
    CYCLES = 6
    REFERENCES = 7
    NAMES = 8
    VALUES = 9
    PROVIDERS = 10


class ValidationStageRange(NamedTuple):
    """The stages that a diagnostic may come from."""

    earliest: ValidationStage
    latest: ValidationStage


READING_ERRORS = re.compile(
    r"Argument (or block )?definition required|Attribute (name required|redefined)|Extra(neous label| characters )|Index value"
    r"|Invalid ('for' (expression|directive)|argument name|attribute name|block definition|character|escape sequence"
    r"|expression|legacy index|multi-line string|number literal|single-argument|string literal|template (directive|control))"
    r"|Missing (argument separator|attribute (separator|value)|clos|expression|false expression|function name"
    r"|item separator|key/value|newline|open parenthesis|\S+ for )|Nested splat|Unbalanced |Unclosed |Unsupported operator"
    r"|Unexpected (comma|end of template|\S+ directive)|Unterminated |Variable name required"
)
LOADING_ERRORS = re.compile(
    r"Cannot override|Duplicate (backend|connection|data|escaping|lifecycle|local|module|output|provider|required|resource"
    r"|variable)|Failed to read|Function calls not allowed|Interpolation-only"
    r"|Invalid (combination|data (resource|source) name|default value for variable|ignore_changes|(provider|resource)"
    r" (name|local name|configuration (alias|reference)|type name)|(local value|module instance|output|variable) name|quoted"
    r"|reference from destroy|type specification|version constraint|\"(when|on_failure)\" keyword)|Missing (base|data resource|module call|resource to override)"
    r"|Quoted |Reserved |Resource for_each is|The \".*\" provisioner|Unsuitable value type"
    r"|Unsupported lifecycle|Variables not allowed|Version constraints inside"
)
MODULE_ERRORS = re.compile(
    r"Empty provider|Module (not installed|source has|version|does not support|is incompatible|\S+ contains)"
    r"|Missing required provider|No configuration (for|passed)|Provider (type mismatch|.* is undefined)|Redundant empty"
    r"|Reference to undefined provider|Unreadable module"
)
PLUGIN_ERRORS = re.compile(r"Unsupported Terraform Core version|Unsupported OpenTofu")
BLOCK_BODY_ERRORS = re.compile(r"Unsupported (argument|block type)$|Missing required argument$")
"""What a block may hold and must hold."""
REFERENCE_ERRORS = re.compile(
    r"Invalid (data source|reference|resource type|index operation|operation)$|Reference to undeclared (module|resource)"
    r"|Self-referen"
)
NAME_ERRORS = re.compile(
    r"Reference to |(Missing|Unexpected) resource instance key|each\.value cannot"
    r'|Invalid "(count|each|path|self|terraform)"|Invalid resource count'
)
VALUE_ERRORS = re.compile(
    r"Attempt to |Call to unknown function|Cannot index|Condition is null|Duplicate object key|Error in function call"
    r"|Inconsistent conditional|Incorrect (attribute value|condition|key|value) type|Insufficient \S+ blocks"
    r"|Invalid ('for' condition|count argument|depends_on|dynamic|expanding argument|for_each|function argument|index"
    r"|object key|operand|template interpolation|value for (input variable|module argument))|Iteration over"
    r"|Missing (map element|\S+ block$)|Not enough function|Null |Operation failed|Output refers|Splat of null"
    r"|Template result|Too many|Unknown variable|Unsupported attribute"
)
MODULE_CALL_ARGUMENT = re.compile(r'argument (?:named )?"(source|version|providers)"')
MODULE_CALL_META_ARGUMENTS = ("", "count", "for_each", "depends_on")
"""Arguments of a module call that all others depend on."""
PROVIDER_SCHEMA_BLOCKS = ("resource", "data", "provider", "ephemeral")
"""Blocks whose arguments are known to a provider, not to Terraform."""
UNEVALUATED_BLOCKS = ("variable", "terraform", "")
"""Blocks in which hardly anything is evaluated, and what stands outside of all blocks."""


def possible_stages(diagnosis: TerraformDiagnostic, module: ModuleSources) -> ValidationStageRange:
    """The stages that a diagnostic about this module may come from."""
    summary = diagnosis.summary
    home = module.home(diagnosis)
    early = ValidationStage.MODULES if home.directory else ValidationStage.LOADING
    if diagnosis.address:
        return ValidationStageRange(ValidationStage.PROVIDERS, ValidationStage.PROVIDERS)
    if summary.startswith("Cycle:"):
        return ValidationStageRange(ValidationStage.CYCLES, ValidationStage.CYCLES)
    if not diagnosis.file or PLUGIN_ERRORS.match(summary):
        return ValidationStageRange(ValidationStage.PLUGINS, ValidationStage.PLUGINS)
    if READING_ERRORS.match(summary) or _is_about_header(diagnosis, home):
        stage = ValidationStage.MODULES if home.directory else ValidationStage.READING
        return ValidationStageRange(stage, stage)
    if MODULE_ERRORS.match(summary):
        return ValidationStageRange(ValidationStage.MODULES, ValidationStage.MODULES)
    kind = home.block.partition(".")[0]
    if BLOCK_BODY_ERRORS.match(summary):
        stage = _body_stage(diagnosis, home, kind, early)
        return ValidationStageRange(stage, stage)
    if LOADING_ERRORS.match(summary):
        return ValidationStageRange(early, early)
    if REFERENCE_ERRORS.match(summary) or "or exported attribute" in diagnosis.detail:
        return ValidationStageRange(ValidationStage.REFERENCES, ValidationStage.REFERENCES)
    if NAME_ERRORS.match(summary):
        return ValidationStageRange(ValidationStage.NAMES, ValidationStage.NAMES)
    if VALUE_ERRORS.match(summary):
        return ValidationStageRange(ValidationStage.VALUES, ValidationStage.VALUES)
    # a provider's messages are its own, and before 0.15 nothing marks them as such
    return ValidationStageRange(
        ValidationStage.REFERENCES if kind in PROVIDER_SCHEMA_BLOCKS else early,
        early if kind in UNEVALUATED_BLOCKS else ValidationStage.PROVIDERS,
    )


def _is_about_header(diagnosis: TerraformDiagnostic, home: TerraformLocation) -> bool:
    """Whether a whole block is skipped, since nothing of its type can be at the top of a file."""
    return diagnosis.summary == "Unsupported block type" and home.block != "" and not home.item


def _body_stage(
    diagnosis: TerraformDiagnostic, home: TerraformLocation, kind: str, early: ValidationStage
) -> ValidationStage:
    """The stage that looks at the arguments of such a block."""
    if kind in PROVIDER_SCHEMA_BLOCKS and home.item != "lifecycle":
        return ValidationStage.VALUES
    is_input = kind == "module" and diagnosis.summary != "Unsupported block type"
    return ValidationStage.INPUTS if is_input and not MODULE_CALL_ARGUMENT.search(diagnosis.detail) else early


class HidingError(NamedTuple):
    """An error after a repair that may hide the target."""

    diagnosis: TerraformDiagnostic
    is_by_repair: bool
    """False where the repair is not to blame: the error was there before, if only behind the target."""


def hiding_error(
    target: TerraformDiagnostic,
    before: ModuleSources,
    after: ModuleSources,
    errors: Iterable[tuple[TerraformDiagnostic, bool]],
) -> HidingError | None:
    """An error that may hide the target after a repair, one that the repair made if there is one.

    None when the target's absence is certain. The errors are those after the repair, each with whether it is new.
    """
    search = _HidingErrorSearch(target, before, after)
    found = [
        HidingError(error, is_new and not search.was_unreached(error))
        for error, is_new in errors
        if search.finds(error, is_new)
    ]
    return max(found, key=lambda one: one.is_by_repair, default=None)


class _HidingErrorSearch:
    """The question whether an error may hide one target."""

    def __init__(self, target: TerraformDiagnostic, before: ModuleSources, after: ModuleSources) -> None:
        self.target, self.before, self.after = target, before, after
        self.stage = possible_stages(target, before).latest
        self.home = before.home(target)
        self.is_body = bool(BLOCK_BODY_ERRORS.match(target.summary))
        self.is_removed = self._argument_is_removed()

    def _argument_is_removed(self) -> bool:
        """Whether the argument that the target was about is gone, although nothing was wrong with its name."""
        home = self.home
        is_about_name = self.is_body and f'"{home.argument}"' in self.target.detail
        if not home.item or is_about_name:
            return False
        definitions = self.after.definitions(home.directory).get(home.block, [])
        items = {item.name for definition in definitions for item in definition.items}
        texts = "\n".join(self.after.text(found.file, found.line_start, found.line_end) for found in definitions)
        return home.item not in items or not re.search(rf"(?<![\w-]){re.escape(home.argument)}\s*[={{]", texts)

    def finds(self, error: TerraformDiagnostic, is_new: bool) -> bool:
        stage = possible_stages(error, self.after).earliest
        home = self.after.home(error)
        if min(stage, self.stage) < ValidationStage.REFERENCES:
            return self._finds_early(stage, home, is_new)
        if self.home.name not in self.after.definitions(self.home.directory):
            return is_new
        if home.directory != self.home.directory:
            return self._finds_in_other_module(is_new)
        if home.name != self.home.name:
            before, after = self._upstream
            # what needed the same broken thing before was validated nevertheless
            return home.name in after and (is_new or home.name not in before)
        return self._finds_in_block(error, stage, home, is_new)

    def was_unreached(self, error: TerraformDiagnostic) -> bool:
        """Whether an error of an untouched call was only not reported: of all calls with errors, Terraform speaks of one."""
        home = self.after.home(error)
        return possible_stages(error, self.after).earliest == ValidationStage.INPUTS and self.after.block_texts(
            home.directory, home.block
        ) == self.before.block_texts(home.directory, home.block)

    def _finds_early(self, stage: ValidationStage, home: TerraformLocation, is_new: bool) -> bool:
        if stage != self.stage:
            return is_new and stage < self.stage
        is_same_block = home.block != "" and (home.directory, home.block) == (self.home.directory, self.home.block)
        if stage == ValidationStage.INPUTS:
            # only the first call is reported, and any may be the first
            return not is_same_block
        if stage == ValidationStage.READING:
            return is_new and home.file == self.home.file
        if stage == ValidationStage.LOADING:
            is_listed = (self.is_body or self.target.summary.startswith("Duplicate ")) and home.item != self.home.item
            return is_new and is_same_block and not is_listed
        return is_new

    def _finds_in_other_module(self, is_new: bool) -> bool:
        """Errors reach another module through its inputs, its outputs and the call itself."""
        before, after = (
            {name for name in names if name.startswith(("module.", "variable."))} for names in self._upstream
        )
        if is_new:
            return bool(self.home.directory) or any(name.startswith("module.") for name in after)
        return not after <= before

    def _finds_in_block(
        self, error: TerraformDiagnostic, stage: ValidationStage, home: TerraformLocation, is_new: bool
    ) -> bool:
        is_same_argument = home.item == self.home.item
        if home.block.startswith("module.") and not is_same_argument and home.item not in MODULE_CALL_META_ARGUMENTS:
            return False
        if not home.block or stage < self.stage or stage == ValidationStage.PROVIDERS == self.stage:
            return is_new
        if self.is_removed:
            return True
        is_same_value = stage == self.stage == ValidationStage.VALUES or bool(BLOCK_BODY_ERRORS.match(error.summary))
        return is_new and is_same_argument and is_same_value

    @cached_property
    def _upstream(self) -> tuple[frozenset[str], frozenset[str]]:
        """What the target's home needs, before and after the repair."""
        before, after = (module.upstream(self.home.directory, self.home.name) for module in (self.before, self.after))
        return before, after


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
