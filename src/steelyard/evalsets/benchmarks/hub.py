"""Datasets of the Hugging Face hub as eval sets: from its API, from its cache on this machine, or from a folder of tables."""

from __future__ import annotations

import http.client
import json
import os
import re
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple, TypeVar

from steelyard.errors import InputError, did_you_mean
from steelyard.secret_texts import Environment, HiddenFrames, Secret
from steelyard.store.database import open_database
from steelyard.text import printable, short_quote

HUB_PREFIX = "hf:"
DEFAULT_ENDPOINT = "https://huggingface.co"
DATASET_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)?(?::[\w. -]+){0,2}")
PART_NAME = re.compile(r"[\w][\w. -]*")
HUB_TIMEOUT_SECONDS = 30
MAX_LISTING_BYTES = 16 << 20
MAX_FILE_BYTES = 8 << 30
MAX_FILES = 1000
COPIED_AT_ONCE = 1 << 20
REDIRECTS = (301, 302, 303, 307, 308)
MAX_REDIRECTS = 5


class HubName(NamedTuple):
    """A dataset, and which part of it is meant."""

    repository: str
    parts: tuple[str, ...]
    """Nothing, a configuration or a split, or both."""


class HubUnreachableError(Exception):
    """The hub cannot be reached; the text says why."""


def hub_name(given: str) -> HubName:
    """The parts of a name such as `hf:openai/gsm8k:main:test`.

    >>> hub_name("hf:openai/gsm8k:main:test")
    HubName(repository='openai/gsm8k', parts=('main', 'test'))
    """
    text = given.removeprefix(HUB_PREFIX)
    if not DATASET_NAME.fullmatch(text) or ".." in text:
        raise InputError("write it as hf:OWNER/NAME, hf:OWNER/NAME:CONFIG or hf:OWNER/NAME:CONFIG:SPLIT")
    repository, *parts = text.split(":")
    return HubName(repository, tuple(parts))


def hub_files(given: str, environment: Mapping[str, str] = Environment()) -> list[str]:
    """The files on this machine that hold the rows of a dataset; fetched unless they are there already.

    Where the hub cannot be reached, what its library has left on disk is taken.
    """
    name = hub_name(given)
    is_offline = environment.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    why = "HF_HUB_OFFLINE is set"
    if not is_offline:
        try:
            return Hub(environment).files(name)
        except HubUnreachableError as error:
            why = str(error)
    found = cached_files(name.repository, name.parts, environment)
    if not found:
        raise InputError(
            f"{why}, and {hub_home(environment)} has no copy of the dataset; set HF_ENDPOINT to a hub that can be reached, "
            "or name a folder with its files"
        )
    return found


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to us: a token must not follow them to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Hub:
    """The hub at one address."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = (environment.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
        parts = urllib.parse.urlsplit(self._address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"HF_ENDPOINT {short_quote(self._address)}: not an address such as https://hub.example.com"
            )
        self._token = environment.get("HF_TOKEN") or environment.get("HUGGING_FACE_HUB_TOKEN") or ""
        self._folder = hub_home(environment) / "steelyard"
        self._opener = urllib.request.build_opener(_NoRedirect)

    def files(self, name: HubName) -> list[str]:
        """The files with the rows that a name stands for, on this machine."""
        about = f"{self._address}/api/datasets/{name.repository}"
        commit = self._json(f"{about}/revision/main").get("sha")
        if not isinstance(commit, str) or not re.fullmatch(r"[0-9a-f]{7,64}", commit):
            raise InputError(f"{self._address} does not say which commit the dataset has")
        listing = _listing(self._json(f"{about}/parquet"))
        config, splits = _configuration(name, listing)
        asked = "" if name.parts == (config,) else name.parts[-1] if name.parts else ""
        split, addresses = chosen("split", asked, splits, ("test", "validation"))
        folder = self._folder / name.repository.replace("/", "--") / commit / config / split
        return [str(self._file(address, folder / f"{number}.parquet")) for number, address in enumerate(addresses)]

    def _file(self, address: str, path: Path) -> Path:
        if path.is_file():
            return path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._open(address) as answer, tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
                try:
                    _copy(answer, part)
                    if answer.length:  # a cut file must not be taken for the dataset next time
                        raise HubUnreachableError(f"{self._address} broke off: {answer.length:,} bytes are missing")
                    Path(part.name).rename(path)
                except BaseException:
                    Path(part.name).unlink(missing_ok=True)
                    raise
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            raise self._break(error) from None
        return path

    def _break(self, error: Exception) -> HubUnreachableError:
        return HubUnreachableError(f"{self._address} broke off: {printable(str(error))}")

    def _json(self, address: str) -> dict[str, Any]:
        try:
            with self._open(address) as answer:
                content = answer.read(MAX_LISTING_BYTES)
                if answer.length and len(content) < MAX_LISTING_BYTES:
                    raise HubUnreachableError(f"{self._address} broke off: {answer.length:,} bytes are missing")
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            raise self._break(error) from None
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            raise InputError(f"{self._address} did not answer with JSON; is HF_ENDPOINT a hub?") from None
        return found if isinstance(found, dict) else {}

    def _open(self, address: str) -> Any:
        for _ in range(MAX_REDIRECTS):
            if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
                raise InputError(f"{self._address} leads to {short_quote(address[:200])}, which is not a web address")
            request = urllib.request.Request(address, headers=self._headers(address))  # noqa: S310  checked above
            try:
                with HiddenFrames():
                    return self._opener.open(request, timeout=HUB_TIMEOUT_SECONDS)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in REDIRECTS or not error.headers.get("Location"):
                        raise self._refusal(error) from None
                    address = urllib.parse.urljoin(address, error.headers["Location"])
            except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                raise HubUnreachableError(f"{self._address} cannot be reached: {printable(str(reason))}") from None
        raise InputError(f"{self._address} redirects more than {MAX_REDIRECTS} times")

    def _headers(self, address: str) -> dict[str, str]:
        headers = {"User-Agent": "steelyard"}
        ours, theirs = urllib.parse.urlsplit(self._address), urllib.parse.urlsplit(address)
        if self._token and (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc):
            headers["Authorization"] = Secret(f"Bearer {self._token}")
        return headers

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        if error.code in (401, 403):
            return InputError(
                f"{self._address} refuses this dataset; it may be private or gated: set HF_TOKEN, and accept its terms there"
            )
        if error.code == 404:
            return InputError(f"{self._address} has no such dataset, or no Parquet files of it; check the name")
        return HubUnreachableError(f"{self._address} answers {error.code}")


def _listing(answer: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """The addresses of Parquet files by configuration and split; what is odd about names is left out."""
    found: dict[str, dict[str, list[str]]] = {}
    count = 0
    for config, splits in answer.items():
        for split, addresses in splits.items() if isinstance(splits, dict) else ():
            if PART_NAME.fullmatch(config) and PART_NAME.fullmatch(split) and addresses and isinstance(addresses, list):
                found.setdefault(config, {})[split] = [one for one in addresses if isinstance(one, str)]
                count += len(addresses)
    if not found or count > MAX_FILES:
        raise InputError(
            f"the hub lists {count} Parquet files of this dataset; expected 1 to {MAX_FILES}: download what you need"
        )
    return found


def _configuration(name: HubName, listing: dict[str, dict[str, list[str]]]) -> tuple[str, dict[str, list[str]]]:
    """The selected configuration; if there is only one, the split may follow the name directly."""
    given = name.parts[0] if name.parts else ""
    if len(listing) == 1 and len(name.parts) == 1 and given not in listing:
        # then it is a split, or there is no such part, which the choice of the split says
        given = ""
    return chosen("configuration", given, listing, ("default",))


def _copy(answer: BinaryIO, file: Any) -> None:
    size = 0
    while piece := answer.read(COPIED_AT_ONCE):
        size += len(piece)
        if size > MAX_FILE_BYTES:
            raise InputError(f"a file of this dataset has more than {MAX_FILE_BYTES >> 30} GiB")
        file.write(piece)
    file.flush()


MAX_CACHED_FILES = 100_000
"""The maximum number of files of a cache that are examined."""


def hub_home(environment: Mapping[str, str]) -> Path:
    """Where the library of the hub keeps what it has fetched."""
    cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home(), ".cache"))
    return Path(environment.get("HF_HOME") or Path(cache, "huggingface")).expanduser()


def folder_tables(paths: Sequence[str], root: str, left_out: Callable[[str, str, int], None]) -> list[str]:
    """The tables below a folder that hold its eval set: of several splits the one for tests, with a warning about the others."""
    below = {os.path.relpath(path, root): path for path in paths}
    splits = files_by_split(table_files(sorted(below)))
    if not splits:
        return []
    named = {split: names for split, names in splits.items() if split}
    if len(named) < 2:
        return [below[name] for names in splits.values() for name in names]
    split, names = chosen("split", "", named, ("test", "validation"))
    others = {other: len(files) for other, files in splits.items() if other != split}
    listed = ", ".join(sorted(other or "none" for other in others))
    left_out(root, f"files of other splits than {split} ({listed}): name such a file to read it", sum(others.values()))
    return [below[name] for name in names]


def cached_files(repository: str, parts: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The files of a dataset that the hub's library, or we, fetched earlier; none if there are none."""
    home = hub_home(environment)
    hub = Path(environment.get("HF_HUB_CACHE") or home / "hub")
    prepared = Path(environment.get("HF_DATASETS_CACHE") or home / "datasets")
    folder = hub / f"datasets--{repository.replace('/', '--')}"
    for root in (
        _newest(home / "steelyard" / repository.replace("/", "--")),
        _newest(folder / "snapshots", folder / "refs" / "main"),
        prepared / repository.replace("/", "___").lower(),
        prepared / repository.replace("/", "___"),
    ):
        names = table_files(_names_below(root)) if root is not None else []
        if root is not None and names:
            return [str(root / name) for name in _chosen_names(names, parts)]
    return []


def _newest(folder: Path, reference: Path | None = None) -> Path | None:
    """The commit that a reference names, otherwise the one that was fetched last."""
    try:
        if reference is not None and reference.is_file():
            named = folder / reference.read_text("utf-8").strip()[:64].replace("/", "")
            if named.is_dir():
                return named
        there = [path for path in folder.iterdir() if path.is_dir()]
        return max(there, key=lambda path: path.stat().st_mtime, default=None)
    except (OSError, UnicodeDecodeError):
        return None


def _names_below(root: Path) -> list[str]:
    found: list[str] = []
    for folder, _, names in os.walk(root):
        found += [os.path.relpath(Path(folder, name), root) for name in names]
        if len(found) > MAX_CACHED_FILES:
            raise InputError(f"{root}: has more than {MAX_CACHED_FILES:,} files; name a folder below it")
    return sorted(found)


def _chosen_names(names: Sequence[str], parts: Sequence[str]) -> list[str]:
    """The files of the configuration and the split that are named; configurations are folders there."""
    left = list(parts)
    if left:
        of_config = [name for name in names if left[0] in Path(name).parts[:-1]]
        if of_config:
            names, left = of_config, left[1:]
    configs = {Path(name).parts[0] for name in names if len(Path(name).parts) > 1} - {"data"}
    if len(parts) == len(left) and len(configs) > 1 and not any(split for split in files_by_split(sorted(configs))):
        chosen("configuration", "", dict.fromkeys(configs, ""), ("default",))
    return list(chosen("split", left[-1] if left else "", files_by_split(names), ("test", "validation"))[1])


TABLE_SUFFIXES = (".parquet", ".arrow", ".csv")
"""Kinds of files with rows, in the order in which they are preferred: one dataset is often there in several."""
SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "eval": "test",
    "evaluation": "test",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
}
"""The words by which the library `datasets` knows splits in the names of files and folders."""
WORD = re.compile(r"[a-z]+")
DERIVED_FILE = re.compile(r"(cache-|tmp).*\.arrow")
"""What the library keeps of transformed rows."""
Files = TypeVar("Files")


def table_files(names: Iterable[str]) -> list[str]:
    """The files with rows, of the most preferred kind present."""
    listed = [name for name in names if not DERIVED_FILE.fullmatch(PurePath(name).name)]
    for suffix in TABLE_SUFFIXES:
        if found := [name for name in listed if name.lower().endswith(suffix)]:
            return found
    return []


def split_of(name: str) -> str:
    """The split that a path below a dataset names; empty if it names none.

    >>> split_of("data/test-00000-of-00001.parquet"), split_of("gsm8k-dev.csv"), split_of("attestation.csv")
    ('test', 'validation', '')
    """
    for part in reversed(PurePath(name.lower()).parts):
        for word in WORD.findall(part.rpartition(".")[0] or part):
            if word in SPLIT_WORDS:
                return SPLIT_WORDS[word]
    return ""


def files_by_split(names: Sequence[str]) -> dict[str, list[str]]:
    """The files of each split, in order."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(split_of(name), []).append(name)
    return found


def chosen(kind: str, given: str, found: Mapping[str, Files], preferred: Sequence[str]) -> tuple[str, Files]:
    """The selected split: the named one, the only one, or the most preferred one present."""
    if given:
        if given not in found:
            raise InputError(f"no {kind} {short_quote(given)} ({did_you_mean(given[:80], found)})")
        return given, found[given]
    if len(found) == 1:
        return next(iter(found.items()))
    for name in preferred:
        if name in found:
            return name, found[name]
    listed = ", ".join(short_quote(name) for name in sorted(found)[:20])
    raise InputError(f"has the {kind}s {listed}; name one of them")


MAX_TABLE_ROWS = 10_000_000
ROWS_AT_ONCE = 1000


def parquet_tables(path: str) -> Iterator[dict[str, Any]]:
    """The rows by the names of their columns, without what is empty; InputError for a file that is not Parquet."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            database = open_database(scratch, "1GB", threads=1)
            try:
                found = database.execute("SELECT * FROM read_parquet(?)", [_escaped(path)])
                names = [column[0] for column in found.description or ()]
                number = 0
                while rows := found.fetchmany(ROWS_AT_ONCE):
                    for row in rows:
                        yield {
                            name: plain_value(value)
                            for name, value in zip(names, row, strict=True)
                            if value is not None
                        }
                    number += len(rows)
                    if number > MAX_TABLE_ROWS:
                        raise InputError(f"more than {MAX_TABLE_ROWS} rows; split the file")
            finally:
                database.close()
    except MemoryError:
        raise InputError("does not fit into the memory") from None
    except Exception as error:
        if not type(error).__module__.startswith(("duckdb", "_duckdb")):
            raise
        raise InputError(f"not a Parquet file: {str(error).splitlines()[0][:200]}") from None


def _escaped(path: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def plain_value(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
