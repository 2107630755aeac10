"""The distribution that docs/extending.md shows is built, installed and used, part by part."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.forked import forked
from support.viewed import Viewer

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text("utf-8")
FILES = dict(re.findall(r"^```(?:py|toml)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS: list[str] = re.findall(r"^steelyard (.*)$", PAGE, re.MULTILINE)
MAX_LINES_PER_PART = 30


def can_build_wheels() -> bool:
    """Whether pip can build without fetching anything: setuptools does so by itself since 70.1."""
    try:
        importlib.metadata.version("wheel")
    except importlib.metadata.PackageNotFoundError:
        return tuple(map(int, importlib.metadata.version("setuptools").split(".")[:2])) >= (70, 1)
    return True


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages that holds the page's distribution."""
    source, target = tmp_path_factory.mktemp("haiku-parts"), tmp_path_factory.mktemp("site-packages")
    (source / "haiku_parts").mkdir()
    (source / "haiku_parts" / "__init__.py").touch()
    for name, content in FILES.items():
        if name == "pyproject.toml" or name.startswith("haiku_parts/"):
            (source / name).write_text(content, "utf-8")
    if can_build_wheels():
        options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target", target]
        command = ["-m", "pip", "install", "-q", *map(str, options), "."]
    else:
        # an older setuptools without the package wheel installs by itself
        layout = [f"--install-{what}={target}" for what in ("purelib", "platlib", "scripts", "data")]
        run = "import setuptools; setuptools.setup()"
        command = ["-c", run, "-q", "install", "--single-version-externally-managed", "--record=files.txt", *layout]
    built = subprocess.run([sys.executable, *command], cwd=source, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    return target


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("steelyard.toml", "haiku.toml"):
        (tmp_path / name).write_text(FILES[name], "utf-8")
    (tmp_path / "critics.marks").write_text(
        "basho pond +\nbasho pond -\nbasho moon +\nissa pond +\nissa moon +\n", "utf-8"
    )
    (tmp_path / "more.topics").write_text("moon: Write a haiku about the moon.\nsnow: And one about snow.\n", "utf-8")
    return tmp_path


def steelyard(place: Path, installed: Path, line: str | Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("STEELYARD_", "PYTEST_"))}
    words = line.split() if isinstance(line, str) else line
    return forked("steelyard", words, place, {**environment, "PYTHONPATH": str(installed), "COLUMNS": "200"})


def command(begin: str) -> str:
    (line,) = [line for line in COMMANDS if line.startswith(begin)]
    return line


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("haiku_parts/")])
def test_a_part_takes_at_most_thirty_lines(name: str) -> None:
    assert len(FILES[name].splitlines()) <= MAX_LINES_PER_PART


def test_a_provider_a_verifier_with_settings_a_pool_and_a_report_make_a_run(place: Path, installed: Path) -> None:
    ran = steelyard(place, installed, command("run"))
    assert ran.returncode == 0, ran.stderr
    assert "unknown key" not in ran.stderr
    assert "verified eagerly" in ran.stderr
    table = "\\begin{tabular}{lr}\npoet/basho & 1/2 \\\\\n\\end{tabular}\n"
    assert ran.stdout == table == (place / "run.tex").read_text("utf-8")
    (stored,) = place.glob("steelyard-runs/*/cases.jsonl")
    case = json.loads(stored.read_text("utf-8"))
    assert case["verify"] == {"kind": "haiku", "settings": {"syllables": [5, 7, 5]}}
    assert "syllables, not (5, 7, 5)" in (place / "run.json").read_text("utf-8")


def test_a_changed_setting_makes_new_verdicts_of_the_stored_replies(place: Path, installed: Path) -> None:
    assert steelyard(place, installed, "run haiku.toml -m poet/basho -n 2").returncode == 0
    (place / "haiku.toml").write_text(FILES["haiku.toml"].replace("[5, 7, 5]", "[2]"), "utf-8")
    again = steelyard(place, installed, "verify latest --eval-set haiku.toml --format tex")
    assert "poet/basho & 1/2" in again.stdout, again.stderr
    facts = [path.read_text("utf-8") for path in place.glob("steelyard-runs/*/attempts*.jsonl")]
    tests = {json.loads(line)["tests"] for line in "".join(facts).splitlines() if '"kind":"verdict"' in line}
    assert len(tests) == 2


@pytest.mark.parametrize(
    ("said", "instead", "problem"),
    [
        (
            "syllables = [5, 7, 5]",
            'syllables = "5-7-5"',
            'haiku.toml:11: case "pond": verify.syllables: expected a list',
        ),
        ("syllables =", "sylables =", 'haiku.toml:11: unknown key "verify.sylables" (known: syllables; did you mean'),
    ],
)
def test_settings_that_the_verifier_does_not_know_are_named_with_their_line(
    place: Path, installed: Path, said: str, instead: str, problem: str
) -> None:
    (place / "haiku.toml").write_text(FILES["haiku.toml"].replace(said, instead), "utf-8")
    said_of_it = steelyard(place, installed, "validate haiku.toml --allow-code")
    assert problem in said_of_it.stdout + said_of_it.stderr


@pytest.mark.parametrize(
    ("said", "instead", "problem"),
    [
        ("verses = [", "verses = 7 # [", "providers.poet: Expected `array`, got `int` - at `$.verses`"),
        ("verses = [", "verse = [", 'unknown key "verse" in [providers.poet]'),
    ],
)
def test_settings_that_the_provider_does_not_know_are_named(
    place: Path, installed: Path, said: str, instead: str, problem: str
) -> None:
    (place / "steelyard.toml").write_text(FILES["steelyard.toml"].replace(said, instead), "utf-8")
    ran = steelyard(place, installed, command("run"))
    assert ran.returncode == 2
    assert problem in ran.stderr


LOOKS = (
    "list",
    "show latest",
    "show latest pond 1",
    "report latest -o report.html -o report.json",
    "query SELECT+1",
    "suites haiku.toml",
    "compare latest latest",
    "allow haiku.toml steelyard.toml steelyard-runs/first",
)


ASKS = ("validate haiku.toml", "verify latest", "resume latest -n 3", "judge latest", "models", "passk --attempts .")
"""Commands that need a plug-in which a file names, and ask first."""


def test_no_plug_in_is_imported_before_the_user_agreed_to_it_and_by_commands_that_only_look_never(
    place: Path, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = 'backend = "eager"\n' + FILES["steelyard.toml"]
    (place / "steelyard.toml").write_text(settings, "utf-8")
    made = "run haiku.toml -m poet/basho -n 2 --output steelyard-runs/first"
    assert steelyard(place, installed, made).returncode == 0
    spoiled = tmp_path / "spoiled"
    shutil.copytree(installed, spoiled)
    for part in (*spoiled.glob("haiku_parts/*.py"),):
        part.write_text("import os\nos.write(2, b'a plug-in was imported')\nos._exit(99)\n", "utf-8")
    assert steelyard(place, spoiled, made).returncode == 99, "the run itself needs them"
    for look in LOOKS:
        ran = steelyard(place, spoiled, [word.replace("+", " ") for word in look.split()])
        assert ran.returncode in (0, 3), (look, ran.stderr)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of another user"))
    (place / "steelyard.toml").write_text('judges = "poet/basho"\n' + settings, "utf-8")
    for ask in ASKS:
        ran = steelyard(place, spoiled, ask)
        assert ran.returncode == 2, (ask, ran.stderr)
        assert "that you have not agreed to" in ran.stderr
    with Viewer(place / "steelyard-runs", PYTHONPATH=str(spoiled)) as viewer:
        for page in ("/", "/runs/first", "/api/v1/runs/first/attempts"):
            assert viewer.get(page).status == 200


def test_a_reader_of_outcomes_counts_what_its_files_hold(place: Path, installed: Path) -> None:
    ran = steelyard(place, installed, command("passk"))
    assert ran.returncode == 0, ran.stderr
    models = {model["model"]: model["pass_at"]["1"]["value"] for model in json.loads(ran.stdout)["models"]}
    assert models == {"basho": 0.75, "issa": 1.0}


def test_an_eval_set_format_is_read_by_its_suffix(place: Path, installed: Path) -> None:
    ran = steelyard(place, installed, command("validate"))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("2 cases in 1 file")


def test_the_doctor_lists_what_is_registered(place: Path, installed: Path) -> None:
    said = steelyard(place, installed, command("doctor")).stdout
    for part in ("poet", "haiku", "tex", "marks", "eager", "topics"):
        assert re.search(rf"\b{part}\b.*haiku-parts 1\.0", said), said


def test_a_part_that_cannot_be_loaded_is_named_with_its_distribution(tmp_path: Path) -> None:
    folder = tmp_path / "broken" / "broken-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n", "utf-8")
    (folder / "entry_points.txt").write_text("[steelyard.reports]\ntex = no_such_module:tex\n", "utf-8")
    ran = steelyard(
        tmp_path, folder.parent, f"report {Path(__file__).parent}/data/run-0.1.0/runs/experiment -o run.tex"
    )
    assert ran.returncode == 2
    assert 'report format "tex" of broken cannot be loaded: ModuleNotFoundError' in ran.stderr


RUN_WITH_TEXTS = Path(__file__).parent / "data" / "run-0.1.0" / "runs" / "experiment"
BROKEN_PARTS = """
import asyncio
from contextlib import asynccontextmanager


def dump(results):
    return f"{len(results.attempts)} attempts, {len(results.summary.models)} models\\n"


def counted(results):
    return dump(results)


counted.needs_texts = False


def fails(*arguments):
    raise KeyError("five")


def wrong(*arguments):
    return 5


class Failing:
    version, at_once, runs_code = "failing 1", 1, False

    def __init__(self, sandbox): ...
    def check(self, case):
        raise KeyError("five")
    async def close(self): ...


class Unmakeable(Failing):
    __init__ = fails


class Undescribed:
    def __init__(self, sandbox): ...


class Unending(Failing):
    def check(self, case): ...
    async def verify(self, case, answer):
        return True
    async def close(self):
        fails()


class Pool:
    given_up, nodes, notes = "", None, ()

    def __init__(self, cases, verification, options):
        self._verification = verification

    @asynccontextmanager
    async def at_work(self, report, *, alone=False):
        yield

    async def put(self, reply, case): ...
    async def close(self):
        await self._verification.close()


class NoPut(Pool):
    put = fails


class NoWork(Pool):
    at_work = fails


class NoEnd(Pool):
    @asynccontextmanager
    async def at_work(self, report, *, alone=False):
        async with asyncio.TaskGroup() as tasks:
            yield
            tasks.create_task(self.fail())

    async def fail(self):
        fails()


class NoClose(Pool):
    async def close(self):
        fails()


class NoNotes(Pool):
    notes = property(fails)


class Mute:
    endpoint, at_once = "mute", 1
    headroom = available = fails

    async def ask(self, attempt, delivery):
        return "no answer"
    async def offers(self):
        fails()
    async def close(self): ...


def mute(model, settings):
    return {model: Mute()}
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder of packages with parts that fail, beside two reports that count the attempts they are given."""
    folder = tmp_path / "broken" / "broken-1.dist-info"
    folder.mkdir(parents=True)
    (folder.parent / "broken_parts.py").write_text(BROKEN_PARTS, "utf-8")
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n", "utf-8")
    groups = {
        "reports": ("dump", "counted", "fails", "wrong"),
        "verifiers": ("Failing", "Unmakeable", "Undescribed", "Unending"),
        "pools": ("fails", "wrong", "NoPut", "NoWork", "NoEnd", "NoClose", "NoNotes"),
        "providers": ("fails", "wrong", "mute"),
    }
    lines = []
    for kind in ("reports", "outcomes", "evalsets", "providers", "pools", "verifiers"):
        names = groups.get(kind, ("fails", "wrong"))
        lines += [f"[steelyard.{kind}]", *(f"{name.lower()} = broken_parts:{name}" for name in names)]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return folder.parent


def test_a_report_that_needs_no_texts_gets_none_even_beside_one_that_does(tmp_path: Path, broken: Path) -> None:
    ran = steelyard(tmp_path, broken, f"report {RUN_WITH_TEXTS} -o all.dump -o few.counted")
    assert ran.returncode == 0, ran.stderr
    attempts, models = re.fullmatch(r"(\d+) attempts, (\d+) models\n", (tmp_path / "all.dump").read_text()).groups()  # type: ignore[union-attr]
    assert int(attempts) > 0
    assert (tmp_path / "few.counted").read_text() == f"0 attempts, {models} models\n"


def test_a_run_whose_reports_need_no_texts_reads_none(place: Path, installed: Path, broken: Path) -> None:
    both = Path(f"{installed}{os.pathsep}{broken}")
    ran = steelyard(place, both, "run haiku.toml -m poet/basho -n 2 --format counted -o run.counted")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == (place / "run.counted").read_text() == "0 attempts, 1 models\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"report {RUN_WITH_TEXTS} -o a.fails", "a.fails: report format \"fails\" of broken failed: KeyError: 'five'"),
        (
            f"report {RUN_WITH_TEXTS} -o a.wrong",
            'a.wrong: report format "wrong" of broken failed: TypeError: it returned int, not str',
        ),
        ("passk a.fails", "a.fails: outcome reader \"fails\" of broken failed: KeyError: 'five'"),
        ("passk a.wrong", 'a.wrong: outcome reader "wrong" of broken failed: TypeError: it returned int, not Outc'),
        ("validate a.fails", "a.fails: eval-set format \"fails\" of broken failed: KeyError: 'five'"),
        ("run haiku.toml -m fails/x", 'model "fails/x": provider "fails" of broken failed: KeyError: \'five\''),
        ("run haiku.toml -m poet/x --backend fails", "backend \"fails\" of broken failed: KeyError: 'five'"),
        ("run failing.toml -m poet/x", "verifier \"failing\" of broken failed: KeyError: 'five'"),
        ("run unmakeable.toml -m poet/x", "verifier \"unmakeable\" of broken failed: KeyError: 'five'"),
        ("run undescribed.toml -m poet/x", 'verifier "undescribed" of broken failed: AttributeError: '),
        ("run unending.toml -m poet/x", "verifier \"unending\" of broken failed: KeyError: 'five'"),
        ("run haiku.toml -m poet/x --backend wrong", 'backend "wrong" of broken failed: AttributeError: '),
        ("run haiku.toml -m poet/x --backend noput", "backend \"noput\" of broken failed: KeyError: 'five'"),
        ("run haiku.toml -m poet/x --backend nowork", "backend \"nowork\" of broken failed: KeyError: 'five'"),
        ("run haiku.toml -m poet/x --backend noend", "backend \"noend\" of broken failed: KeyError: 'five'"),
        ("run haiku.toml -m poet/x --backend noclose", "backend \"noclose\" of broken failed: KeyError: 'five'"),
        ("run haiku.toml -m poet/x --backend nonotes", "backend \"nonotes\" of broken failed: KeyError: 'five'"),
        ("run haiku.toml -m mute/x", "provider \"mute\" of broken failed: KeyError: 'five'"),
    ],
)
def test_what_a_part_raises_becomes_one_sentence(
    place: Path, installed: Path, broken: Path, line: str, message: str
) -> None:
    for name in ("a.fails", "a.wrong"):
        (place / name).write_text("poem pond +\n", "utf-8")
    for kind in ("failing", "unmakeable", "undescribed", "unending"):
        content = FILES["haiku.toml"].replace('kind = "haiku"\nsyllables = [5, 7, 5]', f'kind = "{kind}"')
        (place / f"{kind}.toml").write_text(content, "utf-8")
    ran = steelyard(place, Path(f"{installed}{os.pathsep}{broken}"), line)
    assert ran.returncode == 2, ran.stderr
    assert message in ran.stderr + ran.stdout
    assert "Traceback" not in ran.stderr
