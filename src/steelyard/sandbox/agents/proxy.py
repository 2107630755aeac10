"""The way of an agent to the network: a proxy that lets it reach the hosts that it declares, and reports what it refused."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import urlsplit

from steelyard.sandbox.agents.allowed_hosts import Address, AllowedHosts, parsed_address
from steelyard.text import printable

MAX_PROXY_HEADER_BYTES = 64 << 10
MAX_PROXY_CONNECTIONS = 64
"""Connections of one agent at the same time; the next one waits."""
MAX_PROXY_RESOLVERS = 4
"""Names that are resolved at the same time."""
MAX_LISTED_REFUSALS = 20
"""Different refusals that are reported; for the others only that there were more."""
MAX_SHOWN_HOST_CHARACTERS = 100
PROXY_CONNECT_TIMEOUT_SECONDS = 30
PROXY_HEADER_TIMEOUT_SECONDS = 60
ACCEPT_RETRY_SECONDS = 0.1
PROXY_READ_BYTES = 64 << 10
HOP_HEADERS = (b"connection", b"host", b"keep-alive", b"proxy-authorization", b"proxy-connection")
"""What is meant for us, or set again by us, in a request that is passed on."""

CONTROL_IN_HEAD = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What servers read in different ways, so that one request may become two."""

Resolver = Callable[[str, int], Sequence[Address]]


class _Target(NamedTuple):
    """Where a request wants to go, and what is sent there first."""

    host: str
    port: int
    head: bytes
    """Empty for a tunnel."""


class _Refusal(Exception):
    """A request that leads nowhere, with the status and the sentence that its sender gets."""

    def __init__(self, status: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def system_addresses(host: str, port: int) -> Sequence[Address]:
    """What a name resolves to on this machine."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = (parsed_address(str(entry[4][0])) for entry in found)
    return list(dict.fromkeys(address for address in addresses if address is not None))


class AgentProxy:
    """Takes CONNECT and plain HTTP requests, and connects to declared hosts alone, by addresses that it resolved itself."""

    def __init__(self, hosts: AllowedHosts, resolve: Resolver = system_addresses) -> None:
        self._hosts = hosts
        self._resolve = resolve
        # threads of its own: a name server that an agent chose must not delay other requests
        self._resolving = ThreadPoolExecutor(MAX_PROXY_RESOLVERS, "agent-names")
        self._room = asyncio.Semaphore(MAX_PROXY_CONNECTIONS)
        self._refused: Counter[str] = Counter()
        self._unlisted = 0

    @contextlib.asynccontextmanager
    async def serving(self, listening: socket.socket) -> AsyncIterator[None]:
        """Serve every client of a socket, which is ours from now on."""
        tasks: set[asyncio.Task[None]] = set()

        async def accept() -> None:
            while True:
                await self._room.acquire()
                try:
                    connection, _ = await asyncio.get_running_loop().sock_accept(listening)
                except OSError:  # too many files are open
                    self._room.release()
                    await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                    continue
                task = asyncio.create_task(self._serve(connection))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                task.add_done_callback(lambda _: self._room.release())

        with listening:
            listening.setblocking(False)
            accepting = asyncio.create_task(accept())
            try:
                yield
            finally:
                ending = [accepting, *tasks]
                for task in ending:
                    task.cancel()
                await asyncio.gather(*ending, return_exceptions=True)
                self._resolving.shutdown(wait=False, cancel_futures=True)

    @property
    def refusals(self) -> list[str]:
        """What was refused, in the order in which it was first asked for."""
        lines = [text if count == 1 else f"{text} ({count} times)" for text, count in self._refused.items()]
        return [*lines, "refused other hosts as well"] if self._unlisted else lines

    async def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(sock=connection, limit=MAX_PROXY_HEADER_BYTES)
            try:
                await self._pass_on(reader, writer)
            except _Refusal as refusal:
                sentence = f"steelyard: {refusal}\n".encode()
                head = f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                writer.write(f"{head}Content-Length: {len(sentence)}\r\n\r\n".encode() + sentence)
                await writer.drain()
            finally:
                writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = await _target(reader)
        upstream_reader, upstream_writer = await self._connection(target)
        try:
            if target.head:
                upstream_writer.write(target.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_copy(reader, upstream_writer), _copy(upstream_reader, writer))
        finally:
            upstream_writer.close()

    async def _connection(self, target: _Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a host, if it was declared and if what it resolves to may be reached."""
        host, port = target.host, target.port
        where = f"{printable(host[:MAX_SHOWN_HOST_CHARACTERS])}:{port}"
        if not self._hosts.permits(host, port):
            raise self._refusal(f"refused {where}: not among the hosts that this agent declares")
        try:
            async with asyncio.timeout(PROXY_CONNECT_TIMEOUT_SECONDS):
                address = parsed_address(host)
                addresses = [address] if address is not None else await self._resolved(host, port)
                # what was looked at is what we connect to: a second answer of the name server changes nothing
                open_ones = [each for each in addresses if self._hosts.permits_address(host, each, port)]
                if addresses and not open_ones:
                    raise self._refusal(
                        f"refused {where}: it leads to {addresses[0]}, an address that is not public; declare that too if you mean it"
                    )
                return await _first_connection(open_ones, port)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise _Refusal("502 Bad Gateway", f"{where} cannot be reached: {error or 'no answer'}") from None

    async def _resolved(self, host: str, port: int) -> Sequence[Address]:
        return await asyncio.get_running_loop().run_in_executor(self._resolving, self._resolve, host, port)

    def _refusal(self, text: str) -> _Refusal:
        if text in self._refused or len(self._refused) < MAX_LISTED_REFUSALS:
            self._refused[text] += 1
        else:
            self._unlisted += 1
        return _Refusal("403 Forbidden", text)


async def _target(reader: asyncio.StreamReader) -> _Target:
    """Read the head of a request."""
    try:
        async with asyncio.timeout(PROXY_HEADER_TIMEOUT_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        first, *headers = head[:-4].split(b"\r\n")
        method, address, version = first.decode("ascii").split(" ")
        if CONTROL_IN_HEAD.search(head.replace(b"\r\n", b"")) or not version.startswith("HTTP/1."):
            raise ValueError
        if method == "CONNECT":
            parts = urlsplit(f"//{address}")
            return _Target(parts.hostname or "", parts.port or 443, b"")
        parts = urlsplit(address)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError
        port = parts.port or 80
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        kept = [line for line in headers if line.partition(b":")[0].strip().lower() not in HOP_HEADERS]
        # one request per connection: the next one may be for another host
        own = f"{method} {path} {version}\r\nHost: {host}{'' if port == 80 else f':{port}'}\r\nConnection: close"
        return _Target(parts.hostname, port, b"\r\n".join([own.encode(), *kept, b"", b""]))
    except (ValueError, asyncio.LimitOverrunError):
        raise _Refusal("400 Bad Request", "this proxy takes CONNECT and requests for http:// addresses") from None
    except (asyncio.IncompleteReadError, TimeoutError):
        raise _Refusal("408 Request Timeout", "the request has no end") from None


async def _first_connection(
    addresses: Sequence[Address], port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first address that answers."""
    problem = OSError("the name has no address")
    for address in addresses:
        try:
            return await asyncio.open_connection(str(address), port)
        except OSError as error:
            problem = error
    raise problem


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass on what comes until it ends, and then say that it ended."""
    while piece := await source.read(PROXY_READ_BYTES):
        target.write(piece)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
