"""What the proxy of an agent lets through, over real sockets."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

import pytest

from steelyard.errors import InputError
from steelyard.sandbox.agents.allowed_hosts import Address, AllowedHosts, is_public
from steelyard.sandbox.agents.proxy import MAX_LISTED_REFUSALS, AgentProxy, system_addresses

Asking = Callable[[bytes], Awaitable[bytes]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that answers with the head that it got."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ngot " + head)
    await writer.drain()
    writer.close()


def resolve_all_to_loopback(host: str, port: int) -> Sequence[Address]:
    return [ipaddress.ip_address("127.0.0.1")]


def asked(declared: Sequence[str], *requests: str, rebinding: bool = False) -> tuple[list[bytes], list[str]]:
    """What came back for each request, in which PORT is that of a server that is there, and what was refused."""

    async def work() -> tuple[list[bytes], list[str]]:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = str(server.sockets[0].getsockname()[1])
        hosts = AllowedHosts(entry.replace("PORT", port) for entry in declared)
        proxy = AgentProxy(hosts, resolve_all_to_loopback if rebinding else system_addresses)
        listening = socket.create_server(("127.0.0.1", 0))
        address = listening.getsockname()
        came = []
        async with server, proxy.serving(listening):
            for request in requests:
                reader, writer = await asyncio.open_connection(*address)
                writer.write(request.replace("PORT", port).encode())
                came.append((await reader.read()).replace(port.encode(), b"PORT"))
                writer.close()
        return came, [text.replace(port, "PORT") for text in proxy.refusals]

    return asyncio.run(asyncio.wait_for(work(), 60))


def test_a_declared_host_is_reached_through_a_tunnel_and_by_plain_http() -> None:
    came, refused = asked(
        ["127.0.0.1:PORT", "localhost:PORT"],
        "CONNECT 127.0.0.1:PORT HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://127.0.0.1:PORT/b?c HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: keep-alive\r\nX-Own: 1\r\n\r\n",
        "GET http://LOCALHOST:PORT HTTP/1.1\r\n\r\n",
    )
    assert came[0].endswith(
        b"established\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n\r\ngot GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    # the host is the one that we connected to, whatever the request says beside it
    assert came[1].endswith(b"got GET /b?c HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: close\r\nX-Own: 1\r\n\r\n")
    assert came[2].endswith(b"got GET / HTTP/1.1\r\nHost: localhost:PORT\r\nConnection: close\r\n\r\n")
    assert refused == []


@pytest.mark.parametrize(
    "request_line",
    [
        "CONNECT example.com:443 HTTP/1.1",
        "CONNECT 127.0.0.1:1 HTTP/1.1",
        "CONNECT 127.0.0.2:PORT HTTP/1.1",
        "CONNECT 169.254.169.254:80 HTTP/1.1",
        "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1",
        "CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1",
        "CONNECT 127.0.0.1.evil.test:PORT HTTP/1.1",
        "CONNECT 2130706433:PORT HTTP/1.1",
        "GET http://127.0.0.1:PORT@example.com/ HTTP/1.1",
        "GET http://0x7f000001:PORT/ HTTP/1.1",
    ],
)
def test_what_was_not_declared_is_refused_and_told(request_line: str) -> None:
    (came,), refused = asked(["127.0.0.1:PORT"], f"{request_line}\r\n\r\n")
    assert came.startswith(b"HTTP/1.1 403 ")
    assert [text.endswith("not among the hosts that this agent declares") for text in refused] == [True]


def test_a_name_that_leads_to_a_private_address_is_refused_unless_the_address_is_declared() -> None:
    request = "CONNECT rebound.test:PORT HTTP/1.1\r\n\r\n"
    (came,), refused = asked(["rebound.test:PORT"], request, rebinding=True)
    assert came.startswith(b"HTTP/1.1 403 ")
    assert refused == [
        "refused rebound.test:PORT: it leads to 127.0.0.1, an address that is not public; declare that too if you mean it"
    ]
    (came,), refused = asked(
        ["rebound.test:PORT", "127.0.0.0/8:PORT"], f"{request}GET / HTTP/1.1\r\n\r\n", rebinding=True
    )
    assert b"got GET / HTTP/1.1" in came
    assert refused == []


@pytest.mark.parametrize(
    "request_text",
    ["GET / HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n", "GET http://[::1 HTTP/1.1\r\n\r\n", "GET http://127.0.0.1:PORT/ HTTP/1.1\nX: 1\r\n\r\n",
     "CONNECT 127.0.0.1:99999999 HTTP/1.1\r\n\r\n", "GET " + "x" * 100_000, "GET ftp://127.0.0.1:PORT/ HTTP/1.1\r\n\r\n", "\xe9\r\n\r\n",
     "GET\rX http://127.0.0.1:PORT/ HTTP/1.1\r\n\r\n", "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nX: a\rHost: b\r\n\r\n"],
)  # fmt: skip
def test_what_is_no_request_to_a_proxy_leads_nowhere_and_the_next_one_is_served(request_text: str) -> None:
    (strange, fine), _ = asked(["127.0.0.1:PORT"], request_text, "GET http://127.0.0.1:PORT/ HTTP/1.1\r\n\r\n")
    assert strange.startswith(b"HTTP/1.1 400 ")
    assert b"200 OK" in fine


def test_refusals_are_counted_and_their_list_has_an_end() -> None:
    requests = [f"CONNECT h{number}.test:443 HTTP/1.1\r\n\r\n" for number in range(MAX_LISTED_REFUSALS + 2)]
    _, refused = asked([], requests[0], *requests)
    assert refused[0] == "refused h0.test:443: not among the hosts that this agent declares (2 times)"
    assert len(refused) == MAX_LISTED_REFUSALS + 1
    assert refused[-1] == "refused other hosts as well"


def test_a_host_that_is_not_there_is_no_refusal() -> None:
    (came,), refused = asked(["127.0.0.1:1"], "CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n")
    assert came.startswith(b"HTTP/1.1 502 ")
    assert refused == []


def test_names_and_ports_are_compared_as_they_are_meant() -> None:
    hosts = AllowedHosts(["api.example.com", "*.example.org:8443", "10.0.0.0/8:443", "[fd00::1]:80", "LOCALHOST."])
    assert hosts.permits("API.example.com.", 443)
    assert hosts.permits("api.example.com", 80)
    assert not hosts.permits("api.example.com", 22)
    assert not hosts.permits("example.com", 443)
    assert not hosts.permits("api.example.com.evil.test", 443)
    assert hosts.permits("a.example.org", 8443)
    # a star is one label, as in a certificate
    assert not hosts.permits("a.b.example.org", 8443)
    assert not hosts.permits("example.org", 8443)
    assert not hosts.permits("a.example.org", 443)
    assert hosts.permits("10.1.2.3", 443)
    assert hosts.permits("::ffff:10.1.2.3", 443)
    assert hosts.permits("[fd00::1]", 80)
    assert hosts.declares_loopback
    assert hosts.permits_address("localhost", ipaddress.ip_address("::1"), 80)
    assert not hosts.permits_address("localhost", ipaddress.ip_address("10.1.1.1"), 80)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.1.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
     "0.0.0.0", "255.255.255.255", "224.0.0.1", "::1", "::", "fe80::1", "fd00:ec2::254", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
     "2002:7f00:1::", "64:ff9b:1::1", "ff02::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "192.88.99.1", "5f00::1", "3fff::1"],
)  # fmt: skip
def test_addresses_of_this_machine_its_network_and_its_cloud_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


def test_addresses_of_the_internet_are_public() -> None:
    assert all(
        is_public(ipaddress.ip_address(address)) for address in ("8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808")
    )


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "https://api.example.com",
        "api.example.com/v1",
        "a b",
        "*",
        "x.*.com",
        "h:0",
        "h:65536",
        "10.0.0.1/8",
        "127.1",
        "bü.de",
        "[::1",
    ],
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(InputError, match=r"^hosts: "):
        AllowedHosts([entry])
