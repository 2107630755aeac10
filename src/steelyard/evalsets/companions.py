"""What completes a case: the files that it refers to, and the values for the blanks in its prompt."""

from __future__ import annotations

import ast
import hashlib
import stat
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from steelyard.errors import InputError, did_you_mean
from steelyard.evalsets.schema import Draft, ProblemCollector
from steelyard.providers.agent import workspaces
from steelyard.records import ContentPart, Message, digest
from steelyard.text import printable, short_quote

MAX_COMPANION_FILE_BYTES = 10 << 20
"""Bytes of a file that a case refers to."""


@dataclass
class CompanionFiles:
    """Each of these files, read once."""

    _read: dict[Path, bytes] = field(default_factory=dict)
    _checks: dict[Path, tuple[set[str], str]] = field(default_factory=dict)
    _workspaces: dict[str, str] = field(default_factory=dict)
    _located: set[Path] = field(default_factory=set)

    def text(self, path: Path) -> str:
        """The text of a file, a prompt for example."""
        try:
            return self._bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{printable(str(path))} is not UTF-8 text; save it as UTF-8") from None

    def function(self, folder: Path, reference: str) -> tuple[str, str]:
        """A function `checks.py:score` with its absolute path, and a digest of its file."""
        name, _, function = reference.rpartition(":")
        if not name or not function.isidentifier():
            raise InputError(f'{short_quote(reference)} names no function; write "checks.py:score"')
        path = folder / name
        if path not in self._checks:
            source = self._bytes(path)
            self._checks[path] = _defined_names(source, path), digest(source)
        defined, source_digest = self._checks[path]
        if function not in defined:
            way_out = did_you_mean(function[:80], defined)
            raise InputError(f"{printable(str(path))} does not define {short_quote(function)} ({way_out})")
        return f"{path}:{function}", source_digest

    def workspace(self, folder: Path, name: str) -> tuple[str, str]:
        """A workspace with its absolute path and its full commit, and a digest of its files."""
        try:
            located = workspaces.resolve_workspace(name, folder)
        except (OSError, ValueError) as error:
            raise InputError(f"{short_quote(name)} cannot be read: {system_error_reason(error)}") from None
        if located not in self._workspaces:
            self._workspaces[located] = workspaces.workspace_digest(workspaces.workspace_files(located))
        return located, self._workspaces[located]

    def outside(self, folder: Path) -> list[str]:
        """The prompts and workspaces read since the last call that are not in this folder, by what their links lead to."""
        located = {*self._read, *map(Path, self._workspaces)} - self._checks.keys() - self._located
        self._located |= located
        home = folder.resolve()
        return sorted({str(path) for path in (each.resolve() for each in located) if not path.is_relative_to(home)})

    def attached(self, folder: Path, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """A conversation whose parts have their files."""
        return tuple(
            message
            if isinstance(message.content, str)
            else replace(message, content=tuple(self.attachment(folder, part) for part in message.content))
            for message in messages
        )

    def attachment(self, folder: Path, part: ContentPart) -> ContentPart:
        """A part of a message with the full path of its file and a digest of its bytes; the file must be beside the eval set."""
        if part.type == "text" or bool(part.path) == bool(part.url):
            if part.type == "text" and not (part.path or part.url):
                return replace(part, kept="")
            raise InputError(f'a part of type "{part.type}" has {"text" if part.type == "text" else "a path or a url"}')
        if part.url:
            if not part.url.startswith("https://"):
                raise InputError(f"{short_quote(part.url)} is not an address that a provider can fetch: https://...")
            return replace(part, kept="")
        path = (folder / part.path).resolve()
        if Path(part.path).is_absolute() or not path.is_relative_to(folder.resolve()):
            raise InputError(f"{short_quote(part.path)} must be beside the eval set, or in a folder below it")
        content = hashlib.blake2b(self._bytes(path), digest_size=16).hexdigest()
        return replace(part, path=str(path), digest=content, kept="")

    def _bytes(self, path: Path) -> bytes:
        if path not in self._read:
            try:
                status = path.stat()
                if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_COMPANION_FILE_BYTES:
                    raise InputError(
                        f"{printable(str(path))} is not a regular file of at most {MAX_COMPANION_FILE_BYTES >> 20} MB"
                    )
                self._read[path] = path.read_bytes()
            except (OSError, ValueError) as error:
                raise InputError(f"{printable(str(path))} cannot be read: {system_error_reason(error)}") from None
        return self._read[path]


def _defined_names(source: bytes, path: Path) -> set[str]:
    """The names a Python file defines, found without running it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{printable(str(path))} is not Python: {printable(str(error))}") from None
    defined = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            defined |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return defined


def system_error_reason(error: Exception) -> str:
    """Why the system refused."""
    return getattr(error, "strerror", None) or str(error)


MAX_RENDERED_PROMPT_CHARACTERS = 10 << 20
"""Characters of a prompt once it is filled in."""
MAX_TEMPLATE_LOOP_ROUNDS = 10_000
"""Rounds of all the loops of one prompt."""
MAX_TEMPLATE_TOKENS = 50_000
"""Words of a template; Jinja's time and memory grow with them."""
ALLOWED_TEMPLATE_FILTERS = (
    "capitalize",
    "default",
    "first",
    "last",
    "length",
    "lower",
    "string",
    "title",
    "trim",
    "upper",
)


def rendered_prompt(prompt: str | tuple[Message, ...], values: dict[str, Any]) -> str | tuple[Message, ...]:
    """The prompt with `{{name}}` filled in; variables, if and for are all that a prompt needs."""
    from jinja2 import StrictUndefined, TemplateError, nodes
    from jinja2.sandbox import SandboxedEnvironment

    steps = 0

    def counted(items: Iterable[Any]) -> Iterator[Any]:
        nonlocal steps
        for item in items:
            steps += 1
            if steps > MAX_TEMPLATE_LOOP_ROUNDS:
                raise InputError(f"its loops take more than {MAX_TEMPLATE_LOOP_ROUNDS} rounds")
            yield item

    environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in ALLOWED_TEMPLATE_FILTERS}

    def as_json(value: Any) -> str:
        return msgspec.json.encode(value).decode()

    # promptfoo's templates call it dump
    environment.filters |= {"(counted)": counted, "tojson": as_json, "dump": as_json}
    # nothing that calls, defines, joins or multiplies: a template costs no more than its length and its rounds
    plain = nodes.Output, nodes.TemplateData, nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Slice
    logic = nodes.If, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not, nodes.Compare, nodes.Operand, nodes.Test
    other = nodes.For, nodes.Filter, nodes.Keyword

    def render(text: str) -> str:
        try:
            if sum(1 for _ in islice(environment.lex(text), MAX_TEMPLATE_TOKENS)) == MAX_TEMPLATE_TOKENS:
                raise InputError(f"the template is too long; use fewer than {MAX_TEMPLATE_TOKENS} words in its tags")
            tree = environment.parse(text)
            for node in tree.find_all(nodes.Node):
                is_target = isinstance(node, nodes.Tuple) and node.ctx == "store"
                if not (isinstance(node, (*plain, *logic, *other)) or is_target) or getattr(node, "recursive", False):
                    raise InputError(f"a prompt may use variables, if, for and filters, but no {type(node).__name__}")
            for loop in list(tree.find_all(nodes.For)):
                loop.iter = nodes.Filter(loop.iter, "(counted)", [], [], None, None, lineno=loop.lineno)
            tree.set_environment(environment)
            pieces, size = [], 0
            for piece in environment.from_string(tree).generate(values):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_RENDERED_PROMPT_CHARACTERS:
                    raise InputError(
                        f"longer than {MAX_RENDERED_PROMPT_CHARACTERS >> 20} MB once its variables are filled in"
                    )
            return "".join(pieces)
        except (
            TemplateError,
            SyntaxError,
            TypeError,
            ValueError,
            ArithmeticError,
            RecursionError,
            MemoryError,
        ) as error:
            known = ", ".join(sorted(values))[:200]
            raise InputError(f"cannot be filled in: {printable(str(error))[:200]} (vars: {known})") from None

    if isinstance(prompt, str):
        return render(prompt)
    return tuple(
        replace(
            message,
            content=render(message.content)
            if isinstance(message.content, str)
            else tuple(replace(part, text=render(part.text)) for part in message.content),
        )
        for message in prompt
    )


CHECKS_KIND = "checks"
SCRIPTED_CHECKS_KIND = "scripted-checks"
"""The verifier of lists with checks that are code: only these need a sandbox."""
SCRIPT_KEYS = ("python", "python_code", "javascript", "javascript_code")
OTHER_VERIFICATION_KEYS = ("expect", "python", "tests", "pairs", "build", "test", "run")


def with_check_list(draft: Draft, companions: CompanionFiles, problems: ProblemCollector) -> Draft:
    """The draft with its list of checks where its verifier looks for it, and the code of files in the list."""
    verify = draft.table.get("verify", {})
    if not isinstance(verify, dict) or ("checks" not in draft.table and "checks" not in verify):
        return draft

    def wrong(what: str, number: int | None = None) -> None:
        place = "checks" if number is None else f"checks[{number}]"
        keys = ("checks",) if number is None else ("checks", number)
        problems.error(draft.path, draft.line(keys), f"{draft.subject}: {place}: {what}")

    given = draft.table.get("checks", verify.get("checks"))
    table = {key: value for key, value in draft.table.items() if key != "checks"}
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        wrong('expected a list of tables, such as [{contains = "ok"}]')
        given = []
    if others := [key for key in OTHER_VERIFICATION_KEYS if verify.get(key)]:
        wrong(f"the case also has verify.{others[0]}; keep one of them")
    checks = []
    for number, one in enumerate(given):
        try:
            checks.append(_with_code(one, Path(draft.path).absolute().parent, companions))
        except InputError as error:
            wrong(str(error), number)
    is_scripted = any(key in one for one in checks for key in SCRIPT_KEYS)
    verify = {**verify, "kind": SCRIPTED_CHECKS_KIND if is_scripted else CHECKS_KIND, "checks": checks}
    if is_scripted and isinstance(draft.table.get("vars"), dict):
        verify.setdefault("vars", draft.table["vars"])
    return draft._replace(table={**table, "verify": verify})


def _with_code(check: dict[str, Any], folder: Path, companions: CompanionFiles) -> dict[str, Any]:
    """A check with the source of the function that it names, so that a changed function is a changed check."""
    reference = check.get("python", check.get("javascript"))
    if not isinstance(reference, str) or "code" in check:
        return check
    if "python" in check:
        full, _ = companions.function(folder, reference)
        return {**check, "code": companions.text(Path(full.rpartition(":")[0]))}
    file, _, function = reference.rpartition(":") if ":" in reference else (reference, "", "default")
    return {**check, "javascript": f"{file}:{function}", "code": companions.text(folder / file)}
