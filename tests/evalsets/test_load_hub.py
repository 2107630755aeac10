"""Datasets in folders, and by `hf:` names from a hub on loopback and from the cache of its library."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.evalsets.benchmarks.hub import hub_files

COMMIT = "a" * 40


def rows(split: str, count: int = 2) -> pa.Table:
    return pa.table(
        {
            "question": [f"What is {number} + 1 in {split}?" for number in range(count)],
            "answer": [f"It is {number + 1}.\n#### {number + 1}" for number in range(count)],
        }
    )


class LocalHub:
    """A hub with one dataset, which keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        """Paths with their authorization."""
        self.pages: dict[str, Any] = {}
        """JSON by path, files as bytes, and addresses of redirects as text."""
        self.cut_pages: set[str] = set()
        """Paths whose body breaks off in the middle."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.requests.append((self.path, self.headers.get("Authorization", "")))
                page = hub.pages.get(self.path)
                if isinstance(page, str):
                    self.send_response(302)
                    self.send_header("Location", page)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                body = page if isinstance(page, bytes) else json.dumps(page).encode()
                self.send_response(404 if page is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:6] if self.path in hub.cut_pages else body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    """The routes that the hub documents, with files that pyarrow wrote; a file lies on another host."""
    hub, elsewhere = LocalHub(), LocalHub()
    splits = {}
    for split in ("train", "test"):
        pq.write_table(rows(split), tmp_path / "made.parquet")
        address = f"/api/datasets/openai/gsm8k/parquet/main/{split}/0.parquet"
        hub.pages[address] = f"{elsewhere.url}/blob/{split}"
        elsewhere.pages[f"/blob/{split}"] = (tmp_path / "made.parquet").read_bytes()
        splits[split] = [hub.url + address]
    hub.pages["/api/datasets/openai/gsm8k/revision/main"] = {"id": "openai/gsm8k", "sha": COMMIT}
    hub.pages["/api/datasets/openai/gsm8k/parquet"] = {"main": splits, "socratic": splits}
    hub.pages["elsewhere"] = elsewhere.requests
    yield hub
    hub.close()
    elsewhere.close()


@pytest.fixture
def environment(hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    given = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_secret", "HF_HOME": str(tmp_path / "home")}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return given


def test_a_dataset_of_the_hub_is_an_eval_set_fetched_once_and_only_the_hub_gets_the_token(
    hub: LocalHub, environment: dict[str, str]
) -> None:
    loaded = load(["hf:openai/gsm8k:main"])
    assert [case.messages[0].text for case in loaded.cases] == ["What is 0 + 1 in test?", "What is 1 + 1 in test?"]
    assert COMMIT in loaded.files[0].path
    assert {token for _, token in hub.requests} == {"Bearer hf_secret"}
    assert hub.pages["elsewhere"] == [("/blob/test", "")]
    load(["hf:openai/gsm8k:main"])
    assert len(hub.pages["elsewhere"]) == 1
    train = load(["hf:openai/gsm8k:main:train#prompt=question,target=answer"])
    assert train.cases[0].target == "It is 1.\n#### 1"
    # and without a hub, what was fetched stays there
    hub.close()
    assert load(["hf:openai/gsm8k:main"]).cases == loaded.cases


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hf:openai/gsm8k", 'has the configurations "main", "socratic"; name one of them'),
        ("hf:openai/gsm8k:mian", 'no configuration "mian".*did you mean "main"'),
        ("hf:openai/gsm8k:main:dev", 'no split "dev"'),
        ("hf:openai/gsm9k", "has no such dataset"),
        ("hf:../../etc", "write it as hf:OWNER/NAME"),
        ("hf:", "write it as hf:OWNER/NAME"),
    ],
)
def test_what_the_hub_does_not_have_is_said_in_one_sentence(
    hub: LocalHub, environment: dict[str, str], name: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        load([name])
    assert "\n" not in str(error.value)
    assert "hf_secret" not in str(error.value)


@pytest.mark.parametrize("page", [b"<html>", [], {"sha": "../.."}, {}])
def test_a_page_that_is_no_hubs_is_refused(hub: LocalHub, environment: dict[str, str], page: Any) -> None:
    hub.pages["/api/datasets/openai/gsm8k/revision/main"] = page
    with pytest.raises(InputError, match=r"JSON|commit"):
        load(["hf:openai/gsm8k:main"])


@pytest.mark.parametrize("page", ["/gsm8k/test.parquet", "/api/datasets/openai/gsm8k/parquet"])
def test_what_breaks_off_is_said_and_never_taken_for_the_dataset(
    hub: LocalHub, environment: dict[str, str], tmp_path: Path, page: str
) -> None:
    hub.pages["/gsm8k/test.parquet"] = (tmp_path / "made.parquet").read_bytes()
    hub.pages["/api/datasets/openai/gsm8k/parquet"] = {"main": {"test": [f"{hub.url}/gsm8k/test.parquet"]}}
    hub.cut_pages.add(page)
    with pytest.raises(InputError, match="broke off"):
        hub_files("hf:openai/gsm8k:main:test", environment)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size < 8]
    hub.cut_pages.clear()
    (file,) = hub_files("hf:openai/gsm8k:main:test", environment)
    assert pq.read_table(file).num_rows == 2


@pytest.mark.parametrize(
    "address", ["http://[odd", "http://host:port/x", "http://a b/", "file:///etc/passwd", "\ud800", ""]
)
def test_an_odd_address_of_a_file_is_one_sentence(hub: LocalHub, environment: dict[str, str], address: str) -> None:
    hub.pages["/api/datasets/openai/gsm8k/parquet"] = {"main": {"test": [address]}}
    with pytest.raises(InputError) as error:
        load(["hf:openai/gsm8k:main:test"])
    assert "\n" not in str(error.value)


def test_a_split_without_files_is_one_sentence(hub: LocalHub, environment: dict[str, str]) -> None:
    hub.pages["/api/datasets/openai/gsm8k/parquet"] = {"main": {"test": []}}
    with pytest.raises(InputError, match="Parquet"):
        load(["hf:openai/gsm8k:main:test"])


def test_offline_the_cache_of_the_hubs_library_is_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    snapshot = home / "hub" / "datasets--openai--gsm8k" / "snapshots" / COMMIT
    (snapshot / "main").mkdir(parents=True)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text(COMMIT)
    for split in ("train", "test"):
        pq.write_table(rows(split), snapshot / "main" / f"{split}-00000-of-00001.parquet")
    prepared = home / "datasets" / "acme___sums" / "default" / "0.0.0" / ("b" * 16)
    prepared.mkdir(parents=True)
    for name in ("sums-validation.arrow", "cache-1234.arrow"):
        with pa.OSFile(str(prepared / name), "wb") as file, pa.ipc.new_stream(file, rows("x").schema) as writer:
            writer.write_table(rows("prepared"))
    environment = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    assert hub_files("hf:openai/gsm8k:main", environment)[0].endswith("main/test-00000-of-00001.parquet")
    assert hub_files("hf:openai/gsm8k:train", environment)[0].endswith("main/train-00000-of-00001.parquet")
    (found,) = hub_files("hf:acme/sums", environment)
    assert found.endswith("sums-validation.arrow")
    assert len(load([found]).cases) == 2
    with pytest.raises(InputError, match=r"HF_HUB_OFFLINE is set, and .*home has no copy of the dataset"):
        hub_files("hf:acme/other", environment)
    unreachable = {"HF_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9"}
    with pytest.raises(InputError, match=r"http://127.0.0.1:9 cannot be reached: .*, and .* has no copy"):
        hub_files("hf:acme/other", unreachable)


def test_a_folder_of_tables_is_an_eval_set_and_other_splits_are_named(tmp_path: Path) -> None:
    data = tmp_path / "gsm8k" / "data"
    data.mkdir(parents=True)
    for split in ("train", "test"):
        pq.write_table(rows(split), data / f"{split}-00000-of-00001.parquet")
    loaded = load([tmp_path / "gsm8k"])
    assert [case.messages[0].text[-8:] for case in loaded.cases] == ["in test?"] * 2
    assert "1 × files of other splits than test (train)" in str(loaded.problems[0])
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "dataset_info.json").write_text("{}")
    (saved / "state.json").write_text("{}")
    for shard in range(2):
        path = str(saved / f"data-0000{shard}-of-00002.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, rows("x").schema) as writer:
            writer.write_table(rows(f"shard {shard}"))
    assert len(load([saved]).cases) == 4
    table = tmp_path / "tables"
    table.mkdir()
    (table / "sums.csv").write_text("question,answer\n1 + 1?,2\n")
    assert load([table]).cases[0].target == "2"


def test_an_unknown_field_of_a_map_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("q,a\n1 + 1?,2\n2 + 2?,4\n")
    with pytest.raises(InputError) as error:
        load([f"{path}#promt=q,target=a"])
    assert str(error.value).endswith('--map promt=q: cases have no field "promt" (did you mean "prompt"?)')
    assert len(load([f"{path}#prompt=q,target=a"]).cases) == 2


def test_a_promptfoo_config_takes_its_tests_from_a_dataset(
    hub: LocalHub, environment: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "promptfooconfig.yaml"
    config.write_text(
        "prompts: ['{{question | dump}}']\nproviders: [echo]\n"
        "tests: 'huggingface://datasets/openai/gsm8k?split=train&config=main&limit=1'\n"
        "defaultTest: {assert: [{type: contains, value: '1'}, {type: llm-rubric}]}\n"
    )
    loaded = load([config])
    (case,) = loaded.cases
    assert case.messages[0].text == '"What is 0 + 1 in train?"'
    assert any("llm-rubric without a value" in str(problem) for problem in loaded.problems)
    hub.close()
    config.write_text(config.read_text().replace("gsm8k", "other"))
    with pytest.raises(InputError, match=r"tests: .* cannot be reached: .* has no copy of the dataset"):
        load([config])
