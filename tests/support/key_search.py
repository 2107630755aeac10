"""Where a process shows a value of its environment: its documentation, its records, and tracebacks with the locals of all frames.

Each search is a process of its own, `python -m support.key_search NAME`, and prints what it found as JSON: place and excerpt.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import inspect
import io
import json
import logging
import os
import pkgutil
import pydoc
import shlex
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import msgspec
from rich.pretty import pretty_repr

import steelyard
from steelyard import Case, RunOptions, Settings
from steelyard.engine.preflight.connect import connect, list_models
from steelyard.evalsets.benchmarks.hub import hub_files
from steelyard.protocols import Delivery, Provider, ProviderSettings
from steelyard.providers.embeddings import EmbeddingEndpoint
from steelyard.records import AgentSettings, Attempt, Verify
from steelyard.settings import BUILT_IN_PROVIDERS, environment_value, load, read_env_file, resolve_provider

MARK = "MARK5d1f"
OTHER_NAMES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "STEELYARD_API_KEY", "A_KEY_OF_MINE", "SOMETHING_ELSE")
LONG = "0123456789" * 10
"""Longer than what tools cut off: the beginning of a key is one as well."""


def key_names() -> list[str]:
    """The names of all variables that a provider takes a key from."""
    joined = "|".join(provider.key for provider in BUILT_IN_PROVIDERS.values())
    return sorted({name for name in joined.replace("+", "|").split("|") if name})


def marked_environment() -> dict[str, str]:
    """Variables with values that must never be seen again."""
    return {name: f"{MARK}-{name}-{LONG}" for name in (*key_names(), *OTHER_NAMES)}


Found = dict[str, str]


def look(found: Found, place: str, text: str) -> None:
    """Note a place whose text shows a marked value."""
    at = text.find(MARK)
    if at >= 0:
        found[place] = text[max(0, at - 150) : at + 60]


# ---- documentation


def modules() -> Iterator[ModuleType]:
    """Every module that can be imported; what is started as a program is none."""
    yield steelyard
    for about in pkgutil.walk_packages(steelyard.__path__, "steelyard."):
        if not about.name.endswith("__main__"):
            yield importlib.import_module(about.name)


def documentation() -> Found:
    found: Found = {}
    for module in modules():
        look(found, f"help of {module.__name__}", pydoc.render_doc(module))
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", None) != module.__name__ or not callable(thing):
                continue
            members = [(name, thing)]
            if inspect.isclass(thing):
                members += [(f"{name}.{member}", value) for member, value in vars(thing).items() if callable(value)]
            for called, value in members:
                try:
                    look(found, f"signature of {module.__name__}.{called}", str(inspect.signature(value)))
                except (TypeError, ValueError):  # a builtin's has none
                    continue
    for name in steelyard.__all__:
        look(found, f"help of steelyard.{name}", pydoc.render_doc(getattr(steelyard, name)))
    return found


# ---- records


def is_record(thing: object) -> bool:
    return inspect.isclass(thing) and (
        issubclass(thing, msgspec.Struct) or dataclasses.is_dataclass(thing) or hasattr(thing, "_fields")
    )


def filled_records() -> Iterator[object]:
    """Records that hold a key, whoever gave it to them."""
    secrets = {name: os.environ[name] for name in OTHER_NAMES}
    given = ProviderSettings(
        type="http",
        api_key=secrets["HF_TOKEN"],
        headers=secrets,
        environment=secrets,
        settings={"api_token": secrets["HF_TOKEN"], "more": {"password": secrets["HF_TOKEN"]}},
    )
    agent = AgentSettings(command="true", environment=secrets)
    yield from (given, agent, Settings(providers={"mine": given}, agents={"mine": agent}))
    yield RunOptions(environment=secrets, settings=Settings(providers={"mine": given}))
    yield resolve_provider("openai/m", Settings(), RunOptions().environment)


def records() -> Found:
    found: Found = {}
    made = {}
    for module in modules():
        for name, thing in vars(module).items():
            if is_record(thing) and thing.__module__ == module.__name__:
                try:
                    made[f"{module.__name__}.{name}()"] = thing()
                except TypeError:  # it has fields without a default
                    continue
    for place, record in (*made.items(), *((type(record).__name__, record) for record in filled_records())):
        for show in (repr, str, pretty_repr, lambda shown: pretty_repr(shown, max_string=80), _fields):
            look(found, f"{place} by {show.__name__}", show(record))
    return {**found, **({} if len(made) > 50 else {"records": f"only {len(made)} were made"})}


def _fields(record: object) -> str:
    return " ".join(repr(getattr(record, name)) for name in getattr(record, "__struct_fields__", ()))


# ---- tracebacks


class EchoServer(BaseHTTPRequestHandler):
    """Refuses everything with what it was sent, drops the connection or never answers, as the path says."""

    def do_POST(self) -> None:
        if "/silent" in self.path:
            time.sleep(3)
        if "/silent" in self.path or "/drops" in self.path:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        content = json.dumps({"error": {"message": "no", "headers": dict(self.headers.items())}}).encode()
        self.send_response(200 if "/agrees" in self.path else 500)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST  # noqa: N815  the name is http.server's

    def log_message(self, *_: object) -> None:
        pass


CASE = Case(id="a", prompt="b", verify=Verify(stub="def b():", tests="assert True"))
PROVIDERS = {
    "chat": 'type = "openai"\napi_key = "${OPENAI_API_KEY}"\nheaders = { x-mine = "${SOMETHING_ELSE}" }',
    "responses": 'type = "openai-responses"\napi_key = "${OPENAI_API_KEY}"',
    "completions": 'type = "openai-completions"\napi_key = "${OPENAI_API_KEY}"',
    "azured": 'type = "azure"\napi_key = "${AZURE_OPENAI_API_KEY}"',
    "claude": 'type = "anthropic"\napi_key = "${ANTHROPIC_API_KEY}"',
    "gem": 'type = "gemini"\napi_key = "${GEMINI_API_KEY}"',
    "signed": 'type = "bedrock"\napi_key = "$JOINED"',
    "bearer": 'type = "bedrock"\napi_key = "${AWS_BEARER_TOKEN_BEDROCK}"',
    "llama": 'type = "ollama"\napi_key = "${A_KEY_OF_MINE}"',
    "own": 'type = "http"\napi_key = "${A_KEY_OF_MINE}"\nbody = \'{"q": "{{prompt}}"}\'\nanswer = "text"',
    "library": 'type = "pydantic-ai"\napi_key = "${OPENAI_API_KEY}"',
}
WRONG_SETTINGS = {
    "an unknown type": '[providers.a]\ntype = "nothing"\napi_key = "$LITERAL"',
    "a wrong value": '[providers.a]\ntype = "openai"\napi_key = "$LITERAL"\nbase_url = 3',
    "no TOML": 'api_key = "$LITERAL"\n[',
    "an unknown key of an agent": '[agents.a]\ncommand = "true"\nenvironment = { K = "$LITERAL" }\nx = 1',
    "a key for an address": '[providers.a]\ntype = "openai"\nbase_url = "${SOMETHING_ELSE}"',
}


def written_settings(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name.replace(' ', '-')}.toml"
    joined = environment_value("AWS_ACCESS_KEY_ID+AWS_SECRET_ACCESS_KEY+AWS_SESSION_TOKEN", os.environ)
    path.write_text(text.replace("$JOINED", joined).replace("$LITERAL", os.environ["SOMETHING_ELSE"]))
    return path


def settings_for(folder: Path, url: str) -> Settings:
    tables = [f'[providers.{name}]\n{text}\nbase_url = "{url}"\n' for name, text in PROVIDERS.items()]
    return load(written_settings(folder, "right", "max_retries = 0\n" + "\n".join(tables)), RunOptions().environment)[0]


def asked(model: str, settings: Settings, deadline: float = 20) -> None:
    """Ask one model once, as the engine does."""
    (provider,) = connect([model], RunOptions(settings=settings)).values()
    answered(provider, CASE, deadline)


def answered(provider: Provider, case: Case, deadline: float = 20) -> None:
    async def answer() -> None:
        async with asyncio.timeout(deadline):
            await provider.ask(Attempt(case=case, model="m"), Delivery())

    asyncio.run(answer())


def scenes(folder: Path, server: str, closed: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """What fails, by name."""
    for what, url in (
        ("a closed port", closed),
        ("500 with what it was sent", f"{server}/refuses"),
        ("200 with what it was sent", f"{server}/agrees"),
        ("a dropped connection", f"{server}/drops"),
        ("silence", f"{server}/silent"),
    ):
        settings = settings_for(folder, url)
        for name in PROVIDERS:
            model = "library/openai-chat:m" if name == "library" else f"{name}/m"
            yield f"{name}: {what}", partial(asked, model, settings, 0.5 if what == "silence" else 20)
        yield f"embeddings: {what}", partial(embedded, settings.providers["chat"])
        yield f"hub: {what}", partial(fetched, url)
    yield from engine_scenes(folder, settings_for(folder, f"{server}/refuses"))
    yield from program_scenes(folder)
    for what, text in WRONG_SETTINGS.items():
        path = written_settings(folder, what, text)
        yield f"settings: {what}", partial(load, path, RunOptions().environment)
    lines = folder / "keys.env"
    lines.write_text(f"A_NAME={os.environ['SOMETHING_ELSE']}\nno name\n")
    yield "env file", lambda: read_env_file(lines, {})
    lines.write_bytes(f"A_NAME={os.environ['SOMETHING_ELSE']}\n\xff".encode("latin-1"))
    yield "env file that is no text", lambda: read_env_file(lines, {})
    missing = ProviderSettings(
        type="openai", api_key=os.environ["HF_TOKEN"], base_url="http://x", headers={"a": "${NO_SUCH}"}
    )
    yield "a missing variable", lambda: asked("a/m", Settings(providers={"a": missing}))
    wrong = ProviderSettings(type="bedrock", api_key=f"{os.environ['HF_TOKEN']}:", base_url="http://x")
    proxy = f"://me:{os.environ['SOMETHING_ELSE']}@{closed.partition('//')[2]}"
    for scheme in ("http", "gopher"):
        os.environ["HTTP_PROXY"] = scheme + proxy
        yield f"a proxy: {scheme}", partial(asked, "chat/m", settings_for(folder, "http://models.invalid"))
    del os.environ["HTTP_PROXY"]
    yield "half a key", lambda: asked("a/m", Settings(providers={"a": wrong}))
    ended = ProviderSettings(type="gemini", api_key=f"{os.environ['HF_TOKEN']}\n", base_url="http://x")
    yield "a key with a line end", lambda: asked("a/m", Settings(providers={"a": ended}))


def embedded(settings: ProviderSettings) -> None:
    async def vectors() -> None:
        async with asyncio.timeout(1):
            await EmbeddingEndpoint("m", settings).vectors(["a"])

    asyncio.run(vectors())


def fetched(url: str) -> None:
    os.environ["HF_ENDPOINT"] = url
    hub_files("hf:a/b")


def engine_scenes(folder: Path, settings: Settings) -> Iterator[tuple[str, Callable[[], object]]]:
    """What fails in the middle of a run."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("progress")

    yield (
        "run",
        lambda: steelyard.run(
            [CASE], models="chat/m", output=folder / "run", means=RunOptions(settings=settings, watch=broken)
        ),
    )
    yield "unknown model", lambda: steelyard.run([CASE], models="none/m", means=RunOptions(settings=settings))
    given = RunOptions(environment={name: os.environ[name] for name in key_names()})
    yield "given environment", partial(steelyard.run, [CASE], models="none/m", means=given)
    yield "resume", lambda: steelyard.resume(folder / "nothing", means=RunOptions(settings=settings))

    def listed() -> None:
        raise ValueError(list_models(RunOptions(settings=settings)))

    yield "list of models", listed


def program_scenes(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Programs that cannot be started, or end badly, with our environment."""
    script = folder / "script"

    def written(body: str) -> str:
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o700)
        return shlex.quote(str(script))

    def removed(kind: str) -> None:
        (provider,) = connect([f"{kind}:{written('true')}"], RunOptions()).values()
        script.unlink()
        answered(provider, CASE)

    for kind in ("command", "agent"):
        yield f"{kind}: a program that is gone", partial(removed, kind)
        yield f"{kind}: a bad end", partial(asked, f"{kind}:{written('exit 127')}", Settings())
        yield f"{kind}: no end", partial(asked, f"{kind}:{written('sleep 5')}", Settings(), 0.5)
    changed = Case(id="a", prompt="b", workspace=str(folder), verify=Verify(workspace_digest="0"))
    for contained in ("auto", "off"):
        agent = AgentSettings(
            command="sh -c true", keys=("A_KEY_OF_MINE",), environment={"K": os.environ["SOMETHING_ELSE"]}
        )
        means = RunOptions(settings=Settings(agents={"a": agent}), agent_sandbox=contained)
        (provider,) = connect(["agent:a"], means).values()
        yield f"agent, contained {contained}", partial(answered, provider, changed)


def tracebacks() -> Found:
    found: Found = {}
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.DEBUG)
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadingHTTPServer(("127.0.0.1", 0), EchoServer) as server,
        socket.socket() as closed,
    ):
        closed.bind(("127.0.0.1", 0))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urls = [f"http://127.0.0.1:{number}" for number in (server.server_port, closed.getsockname()[1])]
        for name, act in scenes(Path(folder), *urls):
            shown = io.StringIO()
            with redirect_stdout(shown), redirect_stderr(shown):
                text = failure(act)
            look(found, name, text + shown.getvalue())
        server.shutdown()
    look(found, "logs", log.getvalue())
    return {**found, **({} if "HTTP Request" in log.getvalue() else {"logs": "are empty"})}


def failure(act: Callable[[], object]) -> str:
    """All that a traceback with the locals of every frame can show of what an act raises."""
    try:
        act()
    except Exception as error:
        return "\n".join(_traceback_texts(error))
    return f"{MARK}: nothing was raised"


def _traceback_texts(error: BaseException) -> Iterator[str]:
    """Also of exceptions that are only remembered: a debugger shows them."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True, compact=True)
    yield "".join(shown.format(chain=False))
    for frame, _ in traceback.walk_tb(error.__traceback__):
        # as rich shows it
        yield from (pretty_repr(value, max_string=80) for value in frame.f_locals.values())
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        if other is not None:
            yield from _traceback_texts(other)


if __name__ == "__main__":
    searches = {"documentation": documentation, "records": records, "tracebacks": tracebacks}
    print(json.dumps(searches[sys.argv[1]]()))
