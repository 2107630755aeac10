"""The pages tell the truth: commands run, output is real, nothing is undocumented."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from steelyard import plugins
from steelyard.cli import main as cli
from steelyard.cli.main import command_parser
from steelyard.protocols import ProviderSettings
from steelyard.records import AgentSettings, Case, Expectations, Price, Verify
from steelyard.reports import REPORT_FORMAT_BY_SUFFIX
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES
from steelyard.settings import Settings
from steelyard.text import counted
from support.command_line import shown
from support.fault_server import FaultServer
from support.studies import with_slow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
"""What comes with our environment is found first, Terraform for example."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROSE = [*PAGES, *sorted(ROOT.glob("[A-Z]*.md")), ROOT / "examples" / "README.md"]
"""Everything that people read, pages without examples included."""
UPDATE = bool(os.environ.get("UPDATE_DOCS"))
"""Write what commands really print into the pages, instead of comparing."""


class Block(NamedTuple):
    language: str
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [Block(*block) for block in found if block[0] in languages]


def pages_with(*languages: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, *languages)]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the shipped examples, where a reader of the pages would stand."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def printed(command: str, place: Path) -> str:
    """What a shell shows; our own program is called within this process, unless the shell has more to do."""
    words = shlex.split(command)
    file = words.pop() if words[-2:-1] == [">"] else ""
    has_pattern = re.search(r" [\w/]+\*( |$)", command)
    if words[0] == "steelyard" and (">" not in words or file) and not has_pattern:
        said = shown(
            place,
            *(word for word in words[1:] if word != ">"),
            COLUMNS="100",
            PATH=PATH,
            ANTHROPIC_API_KEY="",
            MISTRAL_API_KEY="",
        )
        if file:
            (place / file).write_text(said, "utf-8")
            said = ""
    else:
        said = _shell(command, place)
    without_progress = re.sub(r"^\d+/\d+ done · .*\n", "", said, flags=re.MULTILINE)
    # other machines have other means of containment
    at_one_level = re.sub(rf"(?<=isolated, |-process, )({'|'.join(ISOLATION_LEVEL_NAMES)})\b", "full", without_progress)
    return re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "20261115-120000-cafe", at_one_level)


def _shell(command: str, place: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "PYTEST_"))}
    return subprocess.run(
        ["sh", "-c", f"{command} 2>&1"],
        cwd=place,
        env={**environment, "PATH": PATH, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
    ).stdout


def steps(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with the output it shows."""
    for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = piece.partition("\n")
        yield command, output


def agrees(shown: str, real: str) -> bool:
    """Whether the output is as shown; a line of dots stands for any number of lines."""
    # other versions of Python find other words for an error of syntax, other processors another last digit
    shown, real = (re.sub(r"SyntaxError: .*", "SyntaxError", text) for text in (shown, real))
    shown, real = (re.sub(r"\b\d\.\d{13,}\b", lambda found: f"{float(found[0]):.12g}", text) for text in (shown, real))
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) for line in shown.splitlines(True))
    return re.fullmatch(pattern, real) is not None


REPLAYED = "steelyard run examples/python-basics.toml --models replay:examples/recordings/python-basics.jsonl.gz"
SHARED_RUNS = [
    f"{REPLAYED} --filter easy --output runs/easy > result.txt",
    f"{REPLAYED} --samples 2 --case 'm*' > result.txt",
    f"{REPLAYED} --samples 5 --case 's*' > result.txt",
]
"""What several pages begin with, and print nowhere."""


@pytest.fixture
def shell(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Carries out commands; runs that pages share are made once, by whichever test process comes first, and copied."""
    session = tmp_path_factory.getbasetemp()
    base = session.parent if "PYTEST_XDIST_WORKER" in os.environ else session

    def carried_out(command: str) -> str:
        # a settings file of the page's own may change what the run records
        if command not in SHARED_RUNS or (place / "steelyard.toml").exists():
            return printed(command, place)
        shared = base / f"shared-run-{SHARED_RUNS.index(command)}"
        with shared.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not shared.exists():
                fresh = shared.with_suffix(".new")
                shutil.copytree(ROOT / "examples", fresh / "examples")
                assert printed(command, fresh) == ""
                shutil.rmtree(fresh / "examples")
                fresh.rename(shared)
        shutil.copytree(shared, place, dirs_exist_ok=True)
        return ""

    return carried_out


SLOW_PAGES = [ROOT / "docs" / "pytest.md"]
"""Pages whose commands verify hundreds of answers; `tests/cli/test_pytest_plugin.py` has what they show."""


@pytest.mark.parametrize(
    "page", with_slow([page for page in pages_with("console") if page not in SLOW_PAGES], SLOW_PAGES), ids=name
)
def test_commands_print_what_the_page_shows(page: Path, shell: Callable[[str], str]) -> None:
    for block in blocks(page, "console"):
        fresh = ""
        for command, expected in steps(block):
            real = shell(command)
            if UPDATE:
                # what still agrees stays, with its lines of dots
                fresh += f"$ {command}\n{expected if agrees(expected, real) else real}"
            else:
                assert agrees(expected, real), f"{command}\nprints:\n{real}"
        if UPDATE:
            page.write_text(page.read_text("utf-8").replace(block.text, fresh), "utf-8")


@pytest.mark.parametrize("page", pages_with("python"), ids=name)
def test_python_on_the_page_runs(page: Path, place: Path, server: FaultServer) -> None:
    for block in blocks(page, "python"):
        environment = {**os.environ, "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        ran = subprocess.run(
            [sys.executable, "-c", block.text], cwd=place, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        assert "Estimate(value=" in ran.stdout


def test_other_tools_find_in_the_copies_what_a_question_finds(place: Path, shell: Callable[[str], str]) -> None:
    page = ROOT / "docs" / "query.md"
    for command, _ in steps(blocks(page, "console")[0]):
        shell(command)
    sql = "SELECT model, avg(correct::INT) AS rate FROM attempts WHERE model LIKE '%1.5b' GROUP BY model"
    (row,) = json.loads(printed(f'steelyard query "{sql}" --format json', place))
    snippets = blocks(page, "py")
    assert len(snippets) == 3
    for snippet in snippets:
        ran = subprocess.run([sys.executable, "-c", snippet.text], cwd=place, capture_output=True, text=True)
        assert ran.stdout == f"{[(row['model'], row['rate'])]}\n", ran.stderr


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("ver[di]*.md")), ids=name)
def test_the_cases_on_the_page_accept_their_references_and_refuse_their_counterexamples(
    page: Path, tmp_path: Path
) -> None:
    cases = "\n".join(block.text for block in blocks(page, "toml") if "[[cases]]" in block.text)
    head = "" if "[eval_set]" in cases else '[eval_set]\nid = "page"\nname = "Page"\n'
    (tmp_path / "page.toml").write_text(head + cases, "utf-8")
    count, answers = (
        len(re.findall(start, cases, re.MULTILINE)) for start in (r"^\[\[cases\]\]", r"^(?:reference|counterex)")
    )
    assert printed("steelyard validate page.toml", tmp_path) == (
        f"{counted(count, 'case')} in 1 file; {counted(answers, 'answer')} proved; 0 problems\n"
    )


def commands() -> list[str]:
    """Every steelyard command in a block of shell, wherever it stands."""
    lines = [line for page in PAGES for block in blocks(page, "sh") for line in block.text.splitlines()]
    return [line for line in lines if line.startswith("steelyard ") and "EVALSET" not in line]


@pytest.mark.parametrize("command", commands())
def test_commands_for_live_models_are_understood(command: str) -> None:
    command_parser(cli.COMMANDS).parse_args(shlex.split(command)[1:])


def test_generated_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for path, content in generate.pages().items():
        assert path.read_text("utf-8") == content, f"{path.name} is out of date; run make docs"
    for copy, original in generate.SHIPPED_COPIES.items():
        assert copy.read_bytes() == original.read_bytes(), f"{copy} is not as `make docs` would write it"
        assert not copy.is_symlink()


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("eval-sets.md", [*Case.__struct_fields__, *Expectations.__struct_fields__, *Verify.__struct_fields__]),
        ("providers.md", [*Settings.__struct_fields__, *ProviderSettings.__struct_fields__, *Price.__struct_fields__]),
        ("agents.md", AgentSettings.__struct_fields__),
        ("providers.md", [f"`{name}`" for name in plugins.plugin_names("providers")]),
        ("eval-sets.md", [f"`{name}`" for name in plugins.plugin_names("verifiers")]),
        ("reports.md", [f"`{suffix}`" for suffix in REPORT_FORMAT_BY_SUFFIX]),
    ],
)
def test_every_field_and_part_is_documented(page: str, words: list[str]) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize("page", PROSE, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text("utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The names that headings have in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PROSE, ids=name)
def test_modules_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"\b(?:tests|benchmarks|examples|src)/[\w/]+\.py\b", page.read_text("utf-8"))
    assert [file for file in named if not (ROOT / file).exists()] == []


def test_the_files_of_the_core_road_are_there() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## The core road")[1].split("\n## ")[0]
    files = [ROOT / "src" / "steelyard" / file for file in re.findall(r"`([\w/]+\.py)`", section)]
    assert len(files) > 20
    assert len(set(files)) == len(files)
    assert [file for file in files if not file.is_file()] == []


def test_ten_files_are_read_first() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## Read these ten files first")[1].split("\n## ")[0]
    assert len(re.findall(r"^\d+\. `src/steelyard/[\w/]+\.py`", section, re.MULTILINE)) == 10


def test_files_of_the_walk_are_there() -> None:
    named = re.findall(r"`([a-z_/]+\.py)`", (ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    homes = [ROOT / "src" / "steelyard", ROOT]
    assert [file for file in named if not any((home / file).exists() for home in homes)] == []


def test_every_room_has_a_promise_and_questions_for_a_reviewer() -> None:
    promises = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## What each room promises")[1]
    questions = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## What a reviewer checks")[1]
    rooms = [path.name for path in (ROOT / "src" / "steelyard").iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if f"`{room}/`" not in promises] == []
    assert [room for room in rooms if f"`{room}`" not in questions] == []


def test_the_glossaries_explain_ten_words_for_users_and_thirty_for_readers_of_the_code() -> None:
    first, more = (
        re.findall(r"^- \*\*(.+?)\*\*: (.+)$", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE)
        for page in ("glossary.md", "design/glossary.md")
    )
    assert len(first) == 10
    assert 20 < len(more) <= 35
    assert len({word.lower() for word, _ in [*first, *more]}) == len(first) + len(more)
    assert [word for word, meaning in more if not re.fullmatch(r"[^.]+\.", meaning)] == []


@pytest.mark.parametrize("page", PROSE, ids=name)
def test_pages_use_plain_words(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    odd = r"\b(is none|to be had|would else|make away with|whoever|so many|besides|anew|sitting)\b"
    assert re.findall(odd, prose, re.IGNORECASE) == []


@pytest.mark.parametrize(
    "command", re.findall(r"^(make [\w-]+) ", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
)
def test_commands_for_contributors_exist(command: str) -> None:
    assert re.search(rf"^{command.removeprefix('make ')}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_tests_of_make_check_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    (core,) = re.findall(r"^CORE_TESTS := (.*)$", makefile, re.MULTILINE)
    assert [file for file in core.split() if not (ROOT / file).exists()] == []


def test_the_pins_name_no_host() -> None:
    pins = (ROOT / "requirements.txt").read_text("utf-8")
    assert "://" not in pins
    assert "--index" not in pins
