"""Datasets of a Hugging Face hub, fetched as Parquet files; the address is `HF_ENDPOINT`, and only it gets the token."""

from __future__ import annotations

import http.client
import json
import os
import re
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from steelyard.errors import InputError
from steelyard.evalsets.benchmarks.hub.local import cached_files, hub_home
from steelyard.evalsets.benchmarks.hub.splits import chosen
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


def hub_files(given: str, environment: Mapping[str, str] = os.environ) -> list[str]:
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
            raise InputError(f"HF_ENDPOINT {short_quote(self._address)}: no address such as https://hub.example.com")
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
            headers["Authorization"] = f"Bearer {self._token}"
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
