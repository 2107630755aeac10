"""Signature Version 4, by which AWS knows who sends a request."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit


class AwsCredentials(NamedTuple):
    """Who asks."""

    access_key: str
    secret_key: str
    session_token: str = ""


def signed_headers(
    credentials: AwsCredentials, method: str, url: str, body: bytes, *, region: str, service: str, at: datetime
) -> dict[str, str]:
    """The headers that sign a request, by the rules that AWS publishes for Signature Version 4."""
    parts = urlsplit(url)
    timestamp = at.strftime("%Y%m%dT%H%M%SZ")
    # as the client sends it: without the port that goes without saying
    host = parts.netloc.lower().removesuffix({"http": ":80", "https": ":443"}.get(parts.scheme, ""))
    headers = {"host": host, "x-amz-date": timestamp}
    if credentials.session_token:
        headers["x-amz-security-token"] = credentials.session_token
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    names = ";".join(sorted(headers))
    request = "\n".join(
        (
            method,
            # the path is encoded a second time, everywhere but at S3
            quote(parts.path or "/", safe="/-_.~"),
            _canonical_query(parts.query),
            *(f"{name}:{headers[name]}" for name in sorted(headers)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    to_sign = "\n".join(("AWS4-HMAC-SHA256", timestamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for piece in scope.split("/"):
        key = _hmac(key, piece)
    signature = _hmac(key, to_sign).hex()
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return _without_host(headers) | {"authorization": authorization}


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _canonical_query(query: str) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query, True))
    return "&".join(f"{name}={value}" for name, value in pairs)


def _without_host(headers: Mapping[str, str]) -> dict[str, str]:
    # the client sends it by itself
    return {name: value for name, value in headers.items() if name != "host"}
