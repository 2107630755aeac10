"""The hosts that an agent may reach: which names and ports, and which addresses behind them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple

from steelyard.errors import InputError
from steelyard.text import printable

DEFAULT_HOST_PORTS = frozenset({80, 443})
"""The ports of a host that is declared without one."""
INTERNAL_NETWORKS = tuple(
    map(
        ipaddress.ip_network,
        (
            *("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48"),
            # addresses of IPv4 in older and newer clothes, of routers, and of documents
            *("::/96", "::ffff:0:0:0/96", "5f00::/16", "3fff::/20"),
        ),
    )
)
"""Networks that look public, at least to older Pythons: there clouds have their metadata services, and others have gateways."""
NAT64_NETWORK = ipaddress.IPv6Network("64:ff9b::/96")

_HOST_PATTERN = re.compile(
    r"(?P<name>(?:\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*)(?::(?P<port>\d{1,5}))?",
    re.ASCII,
)
_ADDRESS_PATTERN = re.compile(r"(?P<address>[\d.]+(/\d+)?|\[[\da-f:.]+\](/\d+)?)(?::(?P<port>\d{1,5}))?", re.ASCII)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class _AllowedName(NamedTuple):
    name: str
    """In lower case; a leading `*.` matches one label."""
    ports: frozenset[int]


class _AllowedNetwork(NamedTuple):
    network: Network
    ports: frozenset[int]


class AllowedHosts:
    """What an agent declares: `api.example.com`, `*.example.com:8443`, `127.0.0.1:8080`, `[::1]:80`, `10.0.0.0/8:443`."""

    def __init__(self, declared: Iterable[str]) -> None:
        """Raises InputError for any other entry."""
        self._names: list[_AllowedName] = []
        self._networks: list[_AllowedNetwork] = []
        for entry in declared:
            self._add(entry)

    def _add(self, entry: str) -> None:
        text = entry.strip().lower().removesuffix(".")
        if found := _ADDRESS_PATTERN.fullmatch(text):
            try:
                network = ipaddress.ip_network(found["address"].replace("[", "").replace("]", ""))
            except ValueError as error:
                raise InputError(f'hosts: "{printable(entry)}": {error}') from None
            self._networks.append(_AllowedNetwork(network, _ports(found["port"], entry)))
        elif found := _HOST_PATTERN.fullmatch(text):
            self._names.append(_AllowedName(found["name"], _ports(found["port"], entry)))
        else:
            raise InputError(
                f'hosts: "{printable(entry)}" is not a host; write one like api.example.com, *.example.com or 127.0.0.1:8080, '
                "without http:// and path"
            )

    def permits(self, host: str, port: int) -> bool:
        """Whether this host, by the name that an agent gives it, and this port were declared."""
        address = parsed_address(host)
        if address is not None:
            return self._declares(address, port)
        name = normal_name(host)
        above = name.partition(".")[2]
        return any(port in each.ports and each.name in (name, f"*.{above}") for each in self._names)

    def permits_address(self, host: str, address: Address, port: int) -> bool:
        """Whether what a permitted host resolved to may be reached: private addresses only where they were declared.

        >>> hosts = AllowedHosts(["example.com", "localhost:8080"])
        >>> [hosts.permits_address("example.com", ipaddress.ip_address(a), 443) for a in ("8.8.8.8", "127.0.0.1")]
        [True, False]
        """
        address = getattr(address, "ipv4_mapped", None) or address
        if self._declares(address, port):
            return True
        if normal_name(host) == "localhost":  # it means nothing else
            return address.is_loopback
        return is_public(address)

    def _declares(self, address: Address, port: int) -> bool:
        address = getattr(address, "ipv4_mapped", None) or address
        return any(port in each.ports and address in each.network for each in self._networks)

    @property
    def declares_loopback(self) -> bool:
        """Whether something on this machine was declared."""
        return any(each.network.is_loopback for each in self._networks) or any(
            each.name == "localhost" for each in self._names
        )


def is_public(address: Address) -> bool:
    """Whether an address belongs to the internet at large, and not to this machine, its network or its cloud."""
    embedded: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        embedded += [found for found in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())) if found]
        if address in NAT64_NETWORK:
            embedded.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return all(
        each.is_global and not each.is_multicast and not any(each in network for network in INTERNAL_NETWORKS)
        for each in embedded
    )


def parsed_address(host: str) -> Address | None:
    """A host that is given by its address."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def normal_name(host: str) -> str:
    """A name as it is compared."""
    return host.lower().removesuffix(".")


def _ports(given: str | None, entry: str) -> frozenset[int]:
    if given is None:
        return DEFAULT_HOST_PORTS
    if not 0 < int(given) < 1 << 16:
        raise InputError(f'hosts: "{printable(entry)}": a port is a number from 1 to 65535')
    return frozenset({int(given)})
