"""Everything from outside is hostile: requests, names, replies and folders; nothing of it is run, followed or let in."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from steelyard.records import Case
from steelyard.text import INVISIBLE_CHARACTER_PATTERN
from support.viewed import Came, Page, Viewer, cases, crawled, made, read

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "<svg/onload=alert(4)>",
    "javascript:alert(5)",
    "data:text/html,<script>alert(6)</script>",
    "{{ 7 * 7 }}{% for x in () %}",
    '" onmouseover="alert(8)" x="',
    "' autofocus onfocus='alert(9)",
    "</pre></details><h1>ours</h1>",
    "]]><!--",
    "&lt;b&gt; &amp;",
    "\u202eright to left\u202c",
    "\x1b[2J\x1b]0;title\x07",
    "a\u2028b\u2029c",
    "\ufeff\u200b",
    "../../../../etc/passwd",
    "%2e%2e%2f",
    "a?b#c&d=e",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    "<style>*{display:none}</style>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<iframe src=javascript:alert(10)>",
    "<a href='javascript:alert(11)'>x</a>",
    "<form action=//evil.example><input name=q>",
    "${alert(12)} `alert(13)` #{x} <%= x %>",
]
MUCH = 64 << 20
"""Bytes that nobody reads from a stranger."""
SECRET = "the secret of somebody else"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("safety") / "runs"
    asked = [
        Case(id=f"{text} {place}", name=text, prompt=text, target="yes", tags=(text,), suite=text)
        for place, text in enumerate(HOSTILE)
    ]
    attempts = [
        (case, model, number, Came("wrong", text, f"got {text}", text, code=text) if number == 1 else Came(text=text))
        for case, text in zip(asked, HOSTILE, strict=True)
        for model in ("openai/<b>strong</b>", 'openai/" onclick="x')
        for number in (1, 2)
    ]
    made(root, "<b>hostile<b>", asked, attempts, eval_set="evals/<script>.toml", system="<script>system</script>")
    long = [Came("wrong", "x" * 5_000_000, "y" * 100_000), Came(text="\n" * 200_000), Came(text="\x00" * 10)]
    some = cases(3)
    made(root, "long", some, [(case, "m", 1, came) for case, came in zip(some, long, strict=True)])
    elsewhere = made(root.parent / "elsewhere", "secret", some[:1], [(some[0], "m", 1, Came(text=SECRET))])
    (root / "linked").symlink_to(elsewhere)
    inside = made(root, "linked-inside", some[:1], [(some[0], "m", 1, Came())])
    (inside / "attempts.jsonl").unlink()
    (inside / "attempts.jsonl").symlink_to(elsewhere / "attempts.jsonl")
    (root / "piped").mkdir()
    os.mkfifo(root / "piped" / "run.json")
    (root.parent / "outside.txt").write_text(SECRET)
    return root


@pytest.fixture(scope="module")
def viewer(runs: Path) -> Iterator[Viewer]:
    with Viewer(runs) as running:
        yield running


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1",
        "127.0.0.1:1",
        "0.0.0.0",
        "localhost",
        "[::1]",
        "127.0.0.1.evil.example",
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/v1/runs", "/static/viewer.js", "/healthz"])
def test_another_host_is_refused_whatever_it_asks_for(viewer: Viewer, host: str, path: str) -> None:
    page = viewer.get(path, host=host)
    assert page.status == 421
    assert "hostile" not in page.text


def test_the_hosts_of_this_machine_are_let_in(viewer: Viewer) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert viewer.get("/", host=f"{host}:{viewer.port}").status == 200


def test_a_request_without_a_host_is_refused(viewer: Viewer) -> None:
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert connection.recv(64).split()[1] in (b"400", b"421")


def test_other_machines_cannot_reach_it(viewer: Viewer) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    bound = {
        line.split()[1]
        for line in listening
        if line.split()[1].endswith(f":{viewer.port:04X}") and line.split()[3] == "0A"
    }
    assert bound == {f"0100007F:{viewer.port:04X}"}


def test_scripts_of_other_sites_are_refused_and_links_of_them_are_not(viewer: Viewer) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert viewer.get("/api/v1/runs", headers=foreign | {"Sec-Fetch-Mode": "no-cors"}).status == 403
    assert viewer.get("/", headers=foreign | {"Sec-Fetch-Mode": "navigate"}).status == 200
    page = viewer.get("/api/v1/runs", headers={"Origin": "https://evil.example"})
    assert not [name for name in page.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    [
        "/runs/..",
        "/runs/../..",
        "/runs/%2e%2e",
        "/runs/..%2f..",
        "/runs/%2e%2e%2foutside.txt",
        "/runs/..%5c..",
        "/runs/%00",
        "/runs/.",
        "/runs/linked",
        "/runs/elsewhere",
        "/runs/" + "a" * 5000,
        "/runs/%ff%fe",
        "/runs/long/attempt/../../../outside.txt",
        "/runs/long%2fattempts.jsonl",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/viewer.js/../../x",
        "//etc/passwd",
        "/etc/passwd",
        "/api/v1/runs/..%2f..%2felsewhere%2fsecret",
        "/api/v1/runs/linked/cases",
        "/api/v1/compare?baseline=../elsewhere/secret&current=long",
        "/api/v1/compare?baseline=/etc/passwd&current=long",
        "/api/v1/compare?baseline=report.json&current=long",
        "/compare?baseline=..%2felsewhere%2fsecret&current=long",
    ],
)
def test_no_path_leaves_the_folder_of_runs(viewer: Viewer, path: str) -> None:
    page = viewer.get(path)
    assert page.status in (400, 404, 409)
    assert SECRET not in page.text
    assert "Traceback" not in page.text
    assert "root:" not in page.text


def test_links_in_the_folder_are_told_of_and_not_followed(viewer: Viewer) -> None:
    assert "links are not followed" in viewer.get("/").told
    inside = viewer.get("/runs/linked-inside")
    assert inside.status == 200
    assert "a link" in inside.told
    assert SECRET not in viewer.get("/runs/linked-inside?q=secret&replies=1").text
    assert viewer.get("/runs/linked-inside?case=case-1&model=m").status == 404


def test_a_pipe_keeps_nobody_waiting(viewer: Viewer) -> None:
    assert viewer.get("/runs/piped").status in (404, 409)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/?q=" + "a" * 20_000, 414),
        ("/?q=" + "a" * 2_000, 400),
        ("/?" + "&".join(f"a{number}=1" for number in range(200)), 400),
        ("/runs/long?page=99999999999999999999", 400),
        ("/runs/long?size=1000000", 400),
        ("/runs/long?case=case-1&model=m&number=99999999999", 400),
        ("/runs/long?case=case-1&model=m&number=%D9%A1", 400),
        ("/api/v1/runs/long/attempts?cursor=99999999999.1.1", 400),
        ("/api/v1/runs/long/attempts?limit=99999999", 400),
        ("/?q=%ff", 400),
    ],
)
def test_what_is_too_long_too_many_or_too_large_is_refused(viewer: Viewer, path: str, status: int) -> None:
    assert viewer.get(path).status == status


def test_a_head_without_end_is_cut_off(viewer: Viewer) -> None:
    sent = 0
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        with suppress(ConnectionError):
            while sent < MUCH:
                sent += connection.send(b"x" * 4096)
    assert sent < MUCH
    assert viewer.get("/healthz").status == 200


@pytest.mark.parametrize(
    "path", ["/", "/runs/long", "/runs/nowhere", "/api/v1/runs", "/healthz", "/static/viewer.js", "/nothing"]
)
def test_every_response_tells_the_browser_what_it_must_not_do(viewer: Viewer, path: str) -> None:
    headers = viewer.get(path).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in headers


def is_ours(page: Page) -> None:
    """No element and no attribute of a page comes from anybody else."""
    for tag, attributes in read(page.text).elements:
        assert tag not in ("style", "iframe", "object", "embed", "base", "img", "marquee"), tag
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc", "formaction")]
        if tag == "script":
            assert re.fullmatch(r"/static/viewer\.js\?v=[0-9a-f]+", attributes["src"])
        for name in ("href", "src", "action"):
            value = attributes.get(name, "")
            assert value == "" or re.match(r"(/(?!/)|#)", value), value


def test_what_models_and_files_say_is_text_on_every_page(viewer: Viewer) -> None:
    pages = crawled(viewer, f"/runs/{quote('<b>hostile<b>')}", most=60)
    pages |= crawled(viewer, "/", most=10)
    assert len(pages) > 50
    for path, page in pages.items():
        assert page.status in (200, 409), path
        if page.headers["content-type"].startswith("text/html"):
            is_ours(page)
            # what is sent back to us must come as it is; nobody sees it
            shown = [text for _, each in read(page.text).elements for name, text in each.items() if name != "value"]
            assert not INVISIBLE_CHARACTER_PATTERN.search("".join([page.told, *shown])), path


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_can_be_searched_for_and_read(viewer: Viewer, text: str) -> None:
    run = f"/runs/{quote('<b>hostile<b>')}"
    page = viewer.get(f"{run}?q={quote(text)}&replies=1")
    assert page.status == 200
    is_ours(page)
    case = quote(f"{text} {HOSTILE.index(text)}", safe="")
    attempt = viewer.get(f"{run}/attempt?case={case}&model={quote('openai/<b>strong</b>', safe='')}")
    assert attempt.status == 200
    is_ours(attempt)
    data = viewer.get(f"/api/v1/cases/{case}")
    assert data.status == 200
    assert data.data["case"]["name"] == text


def test_a_reply_of_megabytes_makes_no_page_of_megabytes(viewer: Viewer) -> None:
    for case in ("case-1", "case-2", "case-3"):
        for path in (f"/runs/long?case={case}&model=m", f"/runs/long/attempt?case={case}&model=m"):
            page = viewer.get(path)
            assert page.status == 200
            assert len(page.text) < 2_000_000
    assert "characters left out" in viewer.get("/runs/long?case=case-1&model=m").told
    assert len(viewer.get("/api/v1/runs/long/cases").text) > 5_000_000


def test_errors_of_ours_are_pages_too(viewer: Viewer) -> None:
    for path in ("/runs/long?sort=x", "/runs/nowhere", "/nothing"):
        page = viewer.get(path)
        is_ours(page)
        assert page.tagged("a", href="/")


def test_a_folder_whose_name_is_no_text_is_listed_all_the_same(tmp_path: Path) -> None:
    some = cases(1)
    for name in ("good", "also"):
        made(tmp_path / "runs", name, some, [(some[0], "m", 1, Came())])
    (tmp_path / "runs" / "also").rename(tmp_path / "runs" / os.fsdecode(b"also\xff\xfe"))
    with Viewer(tmp_path / "runs") as viewer:
        assert "⟨U+DCFF⟩" in viewer.get("/").told
        assert viewer.get("/runs/good").status == 200
        assert viewer.get("/api/v1/runs").status == 200
        assert viewer.get("/compare").status == 200
