"""Everything that `validate` may read of a Terraform module, read once and never touched.

That is the module's folder with everything below it, and files that it refers to elsewhere, but nothing outside of
the repository, and no link that leads out of it. Not read are state, tests, settings of the program, and programs.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.errors import VerifierError
from steelyard.verifiers.terraform.source import TerraformBlock, terraform_blocks

CONFIGURATION_SUFFIXES = (".tf", ".tf.json", ".tofu", ".tofu.json")
TERRAFORM_DATA_FOLDER = ".terraform"
"""The folder in which `init` keeps what it installed."""
MODULES_MANIFEST_FILE, DEPENDENCY_LOCK_FILE = f"{TERRAFORM_DATA_FOLDER}/modules/modules.json", ".terraform.lock.hcl"
"""Where it writes down where modules are, and which providers it chose."""
COPIED_DATA_PATHS = ("modules", "plugins/selections.json")
"""What `init` leaves there apart from the providers."""
SKIPPED_MODULE_NAMES = re.compile(
    r"\.git|\.terraform|terraform\.d|\.terraformrc|\.tofurc|terraform-provi.*"
    r"|.*\.(?:tfstate|tfstate\.backup|(?:tftest|tofutest)\.(?:hcl|json))"
)
"""Names that are left out: repositories, state, settings, tests, and what would be run as a plugin unasked."""
RELATIVE_SOURCE_PATH = re.compile(
    r"(?:(?<![\w.])\.{1,2}/|(?<=\bpath\.module}/)|(?<=\bpath\.root}/))[\w@+./-]*|(?<=\")\.\.(?=\")"
)
"""A path in a source, seen from the source's folder or from that of the module."""
MAX_MODULE_FILES, MAX_MODULE_BYTES, MAX_MODULE_FILE_BYTES = 4_000, 64 << 20, 4 << 20
"""The most that is copied: files, bytes, and bytes of one file."""
MAX_VISITED_MODULE_PATHS = 50_000
"""The maximum number of files and folders that are examined."""
MAX_MODULE_NESTING = 16
"""Modules within modules."""
DEFAULT_PROVIDER_REGISTRIES = ("registry.terraform.io", "registry.opentofu.org")
"""Where a provider is from whose address names no host."""


class ModuleSnapshot(NamedTuple):
    """A module with its surroundings; paths are those from the root of its repository, with forward slashes."""

    folder: str
    """The folder of the module itself; `.` when that is the root."""
    files: Mapping[str, bytes]
    packages: Mapping[str, str] = {}
    """The real folders of the providers that it was initialised with, by their place in the module's own folder."""
    left_out: tuple[str, ...] = ()
    """Files that were not copied: too large, too many, or links to elsewhere."""
    root: Path | None = None
    """The path of the repository; None for a module that was never on a disk."""
    is_complete: bool = True
    """Whether it names all that an answer may need: then a provider that only the answer names is the answer's mistake."""

    def path(self, name: str) -> str:
        """The path of a file that the program calls `name`; a VerifierError when that is outside of the repository."""
        path = posixpath.normpath(posixpath.join(self.folder, name))
        if path.startswith(("/", "../")) or path in (".", ".."):
            raise VerifierError(f"{name} is not a file in the repository of the module")
        return path

    def sources(self, changed: Mapping[str, str] = {}) -> dict[str, str]:
        """The configuration of the module and its local modules by the names that the program has for them."""
        found = {
            posixpath.relpath(path, self.folder): content.decode("utf-8", "replace")
            for path, content in self.files.items()
            if _is_configuration(path)
        }
        return found | {posixpath.normpath(name): text for name, text in changed.items()}


# ---- reading


def read_module_snapshot(root: Path, folder: str = ".") -> ModuleSnapshot:
    """The module in a folder of the repository at `root`; a VerifierError when it is missing."""
    top = root.resolve()
    place = (top / folder).resolve()
    if not place.is_dir() or not place.is_relative_to(top):
        raise VerifierError(f"{root / folder}: no folder of a module in {root}")
    # a folder that is reached by a link is read where it really lies, as the program would
    start = place.relative_to(top).as_posix()
    gathering = _ModuleFileCollector(top, start)
    gathering.take(start)
    for kept in COPIED_DATA_PATHS:
        gathering.take(f"{start}/{TERRAFORM_DATA_FOLDER}/{kept}")
    gathering.take_all_named(gathering.files)
    if not any((posixpath.dirname(path) or ".") == start and _is_configuration(path) for path in gathering.files):
        raise VerifierError(f"{root / folder}: no Terraform files")
    return ModuleSnapshot(start, gathering.files, _packages(place), tuple(gathering.left_out), top)


def version_files(tree: ModuleSnapshot, changed: Mapping[str, str]) -> dict[str, bytes]:
    """The files of a version by their paths: those that it changes, and what these name elsewhere in the repository."""
    own = {tree.path(name): text.encode() for name, text in changed.items()}
    if tree.root is None:
        return own
    gathering = _ModuleFileCollector(tree.root, tree.folder, {**tree.files, **own})
    gathering.take_all_named(own)
    return own | {path: content for path, content in gathering.files.items() if path not in tree.files}


class _ModuleFileCollector:
    """Files on their way into memory, the configuration first, so that a limit drops other files."""

    def __init__(self, root: Path, start: str, known: Mapping[str, bytes] = {}) -> None:
        self.root = root
        self.start = start
        self.files = dict(known)
        self.left_out: list[str] = []
        self._others: list[str] = []
        self._taken = set(known)
        self._bytes = sum(map(len, known.values()))

    def take(self, path: str) -> None:
        """Take a file, or a folder with what is below it, unless it leads out of the repository."""
        path = posixpath.normpath(path)
        if path in self._taken or path.startswith(("/", "..")) or len(self._taken) > MAX_VISITED_MODULE_PATHS:
            return
        self._taken.add(path)
        place = self.root / path
        real = place.resolve()
        if not real.is_relative_to(self.root):
            self.left_out.append(path)
        elif real.is_dir():
            # of a folder above the module's only what is named is taken: the rest may be any number of other modules
            is_above = path != self.start and (path == "." or self.start.startswith(f"{path}/"))
            # and a link to a folder that it lies in would never end
            is_endless = place.is_symlink() and place.parent.resolve().is_relative_to(real)
            for entry in () if is_endless else sorted(real.iterdir()):
                if not SKIPPED_MODULE_NAMES.fullmatch(entry.name) and not (is_above and entry.is_dir()):
                    self.take(posixpath.join(path, entry.name))
        elif real.is_file():
            if _is_needed(path):
                self._read(path, real)
            else:
                self._others.append(path)

    def take_all_named(self, by: Iterable[str]) -> None:
        """Read the files that these refer to elsewhere, and then all others, up to the limit."""
        waiting = list(by)
        while waiting:
            path = waiting.pop()
            before = len(self.files)
            for named in RELATIVE_SOURCE_PATH.findall(self.files[path].decode("utf-8", "replace")):
                for folder in (posixpath.dirname(path), self.start):
                    self.take(posixpath.join(folder, named))
            waiting += list(self.files)[before:]
        for path in self._others:
            self._read(path, (self.root / path).resolve())

    def _read(self, path: str, real: Path) -> None:
        size = real.stat().st_size
        if size > MAX_MODULE_FILE_BYTES or self._bytes + size > MAX_MODULE_BYTES or len(self.files) >= MAX_MODULE_FILES:
            if _is_needed(path):
                raise VerifierError(
                    f"{real} is too large, or one file too many: at most {MAX_MODULE_FILES:,} are copied"
                )
            self.left_out.append(path)
            return
        with real.open("rb") as file:
            content = file.read(MAX_MODULE_FILE_BYTES)
        self._bytes += len(content)
        self.files[path] = content


def _packages(place: Path) -> dict[str, str]:
    """The installed providers: host, namespace, name, version and platform make up their place."""
    found = {}
    for kept in ("providers", "plugins"):
        for package in sorted((place / TERRAFORM_DATA_FOLDER / kept).glob("*/*/*/*/*")):
            if package.is_dir():
                found[package.relative_to(place).as_posix()] = str(package.resolve())
    return found


def _is_configuration(path: str) -> bool:
    return path.endswith(CONFIGURATION_SUFFIXES) and not posixpath.basename(path).startswith(".")


def _is_needed(path: str) -> bool:
    """Whether validation needs it."""
    kept = (DEPENDENCY_LOCK_FILE, "modules.json", "selections.json")
    return _is_configuration(path) or posixpath.basename(path) in kept


# ---- what a version needs


class InstallRequirements(NamedTuple):
    """What a version of a module needs installed."""

    manifest: bytes
    """Where its modules are, as `init` would have written it."""
    providers: frozenset[str]
    """The addresses of the providers that it uses, such as `hashicorp/aws`."""
    settled: frozenset[str]
    """Everything that decides which providers are installed; two versions that have this in common share an `init`."""
    absent: frozenset[str]
    """The modules that come from elsewhere and were never installed."""


def install_requirements(tree: ModuleSnapshot, own: Mapping[str, bytes] = {}) -> InstallRequirements:
    """What a version of the module needs that has these files of its own."""
    files = {**tree.files, **own}
    by_folder: dict[str, list[str]] = {}
    for path in sorted(files):
        by_folder.setdefault(posixpath.dirname(path) or ".", []).extend([path] if _is_configuration(path) else [])
    installed = {entry["Key"]: entry for entry in _manifest_entries(files.get(tree.path(MODULES_MANIFEST_FILE), b""))}
    entries: dict[str, dict[str, str]] = {}
    providers: set[str] = set()
    settled: set[str] = set()
    absent: set[str] = set()
    waiting = [({"Key": "", "Source": "", "Dir": "."}, tree.folder)]
    while waiting and len(entries) < MAX_MODULE_FILES:
        entry, folder = waiting.pop()
        if entry["Key"] in entries:
            continue
        entries[entry["Key"]] = entry
        dependencies = [_file_dependencies(files[path], path.endswith(".json")) for path in by_folder.get(folder, ())]
        sources = {name: source for about in dependencies for name, source in about.required}
        providers |= {
            short_provider_address(sources.get(name) or name) for about in dependencies for name in about.providers
        }
        settled |= {word for about in dependencies for word in about.settled}
        for about in dependencies:
            for name, source in about.calls:
                key = f"{entry['Key']}.{name}".removeprefix(".")
                if source.startswith(("./", "../")) or source in (".", ".."):
                    target = posixpath.normpath(posixpath.join(folder, source))
                    if target in by_folder and key.count(".") < MAX_MODULE_NESTING:
                        place = posixpath.relpath(target, tree.folder)
                        waiting.append(({"Key": key, "Source": source, "Dir": place}, target))
                    elif target in tree.left_out:
                        absent.add(source)
                    else:
                        # a folder that is not there is written down as one without a place
                        entries.setdefault(key, {"Key": key, "Source": source, "Dir": ""})
                elif key in installed and installed[key]["Source"].endswith(source):
                    target = posixpath.normpath(posixpath.join(tree.folder, installed[key]["Dir"]))
                    waiting.append((installed[key], target))
                else:
                    absent.add(source)
    manifest = json.dumps({"Modules": [entries[key] for key in sorted(entries)]})
    return InstallRequirements(manifest.encode(), frozenset(providers), frozenset(settled), frozenset(absent))


def _manifest_entries(manifest: bytes) -> Iterator[dict[str, str]]:
    """The entries of a manifest that `init` wrote; empty if it cannot be read."""
    try:
        entries = json.loads(manifest)["Modules"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and all(isinstance(entry.get(field), str) for field in ("Key", "Source", "Dir")):
            yield {name: value for name, value in entry.items() if isinstance(value, str)}


def short_provider_address(address: str) -> str:
    """The shortest address of a provider: what is not said is always the same.

    >>> short_provider_address("aws"), short_provider_address("registry.terraform.io/hashicorp/aws"), short_provider_address("Example.com/a/b")
    ('hashicorp/aws', 'hashicorp/aws', 'example.com/a/b')
    """
    host, _, short = address.lower().partition("/")
    if short and host in DEFAULT_PROVIDER_REGISTRIES:
        return short
    return address.lower() if short else f"hashicorp/{host}"


class _FileDependencies(NamedTuple):
    """What one file says about modules and providers."""

    calls: tuple[tuple[str, str], ...]
    """The modules that it calls, by name and source."""
    providers: frozenset[str]
    """The providers that it uses, by the names that its module has for them."""
    required: tuple[tuple[str, str], ...]
    """Those whose addresses it gives."""
    settled: frozenset[str]


@lru_cache(maxsize=1024)
def _file_dependencies(content: bytes, is_json: bool) -> _FileDependencies:
    text = content.decode("utf-8", "replace")
    return _dependencies_in_json(text) if is_json else _dependencies_in_hcl(text)


MODULE_SOURCE = re.compile(r'\bsource[ \t]*=[ \t]*"([^"\\\n]*)"')
REQUIRED_PROVIDER = re.compile(
    r"(?:^|[{,])[ \t]*(?!source\b|version\b|configuration_aliases\b)([\w-]+)[ \t]*="
    r"[ \t]*(?:\"|\{(?:[^{}]*?\bsource[ \t]*=[ \t]*\"([^\"\n]*)\")?)",
    re.MULTILINE,
)
"""A provider that is required: its name, and its address if that is given."""


def _dependencies_in_hcl(text: str) -> _FileDependencies:
    calls: list[tuple[str, str]] = []
    providers: set[str] = set()
    required: list[tuple[str, str]] = []
    settled: set[str] = set()
    lines = text.split("\n")
    for block in terraform_blocks(text):
        kind, _, rest = block.address.partition(".")
        if kind == "module":
            source = MODULE_SOURCE.search(_item_text(block, "source", lines))
            calls += [(rest, source[1])] if source else []
        elif kind in ("resource", "data", "ephemeral"):
            providers.add(re.split(r"[_.]", rest)[0])
        elif kind == "provider":
            providers.add(rest)
        elif kind == "terraform":
            required += REQUIRED_PROVIDER.findall(_item_text(block, "required_providers", lines))
        if kind in ("provider", "terraform"):
            settled.add("\n".join(lines[block.line_start - 1 : block.line_end]))
    providers.update(name for name, _ in required)
    providers.discard("terraform")
    return _FileDependencies(tuple(calls), frozenset(providers), tuple(required), frozenset(settled | providers))


def _item_text(block: TerraformBlock, name: str, lines: list[str]) -> str:
    """The lines of an argument or block that stands directly in a block."""
    found = [item for item in block.items if item.name == name]
    return "\n".join("\n".join(lines[item.line_start - 1 : item.line_end]) for item in found)


def _dependencies_in_json(text: str) -> _FileDependencies:
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        return _FileDependencies((), frozenset(), (), frozenset())
    calls = []
    for name, body in _members(top, "module"):
        calls += [(name, call["source"]) for call in _tables(body) if isinstance(call.get("source"), str)]
    providers = {re.split(r"[_.]", name)[0] for kind in ("resource", "data") for name, _ in _members(top, kind)}
    providers |= {name for name, _ in _members(top, "provider")}
    required = []
    for part in _tables(top):
        for terraform in _tables(part.get("terraform")):
            for name, asked in _members(terraform, "required_providers"):
                required.append((name, str(asked.get("source") or "") if isinstance(asked, dict) else ""))
    providers.update(name for name, _ in required)
    providers.discard("terraform")
    # what else the file says seldom changes, so it is not worth taking apart
    return _FileDependencies(tuple(calls), frozenset(providers), tuple(required), frozenset({text}))


def _members(table: Any, name: str) -> Iterator[tuple[str, Any]]:
    """What is below a key, which JSON may spread over several objects."""
    for part in _tables(table):
        for inner in _tables(part.get(name)):
            yield from inner.items()


def _tables(value: Any) -> Iterable[dict[str, Any]]:
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict)]
