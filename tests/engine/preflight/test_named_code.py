"""Code that files name runs only after this user agreed to just that content."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest

from steelyard.sandbox.levels import probe_isolation
from steelyard.store.allowed_code import allow_code, allowed_code, allowed_code_file
from support.command_line import Ended, steelyard
from support.viewed import Viewer

HEADER = '[eval_set]\nid = "s"\nname = "s"\n'
CASE = '[[cases]]\nid = "a"\nname = "a"\nprompt = "say yes"\ntarget = "yes"\n'
CHECK = """
def mark():
    with open("ran.txt", "a") as file:
        file.write("x")

def score(text):
    mark()
    return "yes" in text

def ask(prompt):
    mark()
    return "yes"

mark()
"""
PROGRAM = "#!/bin/sh\necho x >> ran.txt\necho yes\n"


TIERS = """
[experiment]
id = "e"
name = "e"
cases = ["function.toml"]
runs = 1
[[tiers]]
name = "t"
model = "python:yes.py:ask"
"""


class Home:
    """One user's machine: a folder with files of a stranger's, and a state folder."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.state = place / "state"

    def write(self, name: str, text: str) -> Path:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def steelyard(self, *arguments: str, **environment: str) -> Ended:
        return steelyard(self.place, *arguments, **{"XDG_STATE_HOME": str(self.state), **environment})

    def times_run(self) -> int:
        """How often the code was run since the last question."""
        path = self.place / "ran.txt"
        count = len(path.read_text().split("x")) - 1 if path.exists() else 0
        path.unlink(missing_ok=True)
        return count

    def forget(self) -> None:
        (self.state / "steelyard" / "allowed").unlink()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.write("checks.py", CHECK)
    made.write("ask.sh", PROGRAM)
    made.write("yes.py", CHECK)
    made.write("yes_of_named_code.py", CHECK)
    made.write("function.toml", HEADER + CASE + 'reference = "yes"\nverify = { python = "checks.py:score" }\n')
    made.write(
        "custom.toml",
        HEADER + CASE + '[cases.verify]\nkind = "response"\n[cases.expectations]\ncustom_check = "checks.py:score"\n',
    )
    made.write("plain.toml", HEADER + CASE)
    return made


def refused(ran: Ended, *said: str) -> None:
    assert ran.returncode == 2, ran.stderr + ran.stdout
    assert "runs code with your rights that you have not agreed to" in ran.stderr
    for text in said:
        assert text in ran.stderr


def test_a_check_of_a_strangers_runs_after_the_user_allowed_just_that_content(home: Home) -> None:
    refused(home.steelyard("validate", "function.toml"), "function score of", "type: steelyard allow function.toml")
    assert not home.times_run()
    assert home.steelyard("validate", "function.toml", "--allow-code").returncode == 0
    assert home.times_run()
    refused(home.steelyard("validate", "function.toml"))
    allowed = home.steelyard("allow", "function.toml")
    assert "allowed the function score of" in allowed.stderr
    assert not home.times_run()
    assert home.steelyard("validate", "function.toml").returncode == 0
    assert home.times_run()
    home.write("checks.py", CHECK + "# changed\n")
    refused(home.steelyard("validate", "function.toml"))
    home.write("checks.py", CHECK)
    home.write("elsewhere/checks.py", CHECK)
    home.write("elsewhere/function.toml", (home.place / "function.toml").read_text())
    refused(home.steelyard("validate", "elsewhere/function.toml"))
    assert not home.times_run()


@pytest.mark.parametrize(
    ("evals", "model"),
    [
        ("custom.toml", "python:yes.py:ask"),
        ("function.toml", "command:./ask.sh"),
        ("plain.toml", "python:yes_of_named_code:ask"),
    ],
)
def test_what_is_named_to_run_is_said_once_and_resumed_without_a_question(home: Home, evals: str, model: str) -> None:
    failed = home.steelyard("run", evals, "-m", model, "--max-cost", "1", "--output", "out")
    assert failed.returncode == 2
    assert "with your rights" not in failed.stderr
    ran = home.steelyard("run", evals, "-m", model, "--output", "out")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("note: this runs code with your rights: ") == 1
    home.forget()
    taken = home.steelyard("run", evals, "-m", model, "--output", "out")
    assert (taken.returncode, len(taken.stderr.splitlines())) == (2, 1), taken.stderr
    assert home.steelyard("run", evals, "-m", model, "--output", "forgotten").returncode == 0
    again = home.steelyard("run", evals, "-m", model, "--output", "again")
    assert "with your rights" not in again.stderr
    home.times_run()
    assert home.steelyard("resume", "out", "--samples", "2").returncode == 0
    assert home.times_run()
    assert home.steelyard("verify", "out").returncode == 0
    home.times_run()
    home.forget()
    refused(home.steelyard("resume", "out", "--samples", "3"), "type: steelyard allow out")
    assert not home.times_run()
    if evals != "plain.toml":
        refused(home.steelyard("verify", "out"), "type: steelyard allow out")
        refused(home.steelyard("verify", "out", "--eval-set", evals), f"type: steelyard allow {evals}")
        assert not home.times_run()
    assert home.steelyard("allow", "out").returncode == 0
    assert not home.times_run()
    assert home.steelyard("resume", "out", "--samples", "3").returncode == 0
    assert home.times_run()
    assert home.steelyard("verify", "out").returncode == 0


def test_a_settings_file_of_a_strangers_cannot_allow_itself_or_turn_the_sandbox_off(home: Home) -> None:
    home.write("steelyard.toml", "allow_code = true\n")
    refused(home.steelyard("validate", "function.toml"))
    for setting in (
        "allow_weak_sandbox = true",
        'agent_sandbox = "off"',
        'ray_address = "there:1"',
        'env_file = "checks.py"',
        'python_env = "x"',
    ):
        home.write("steelyard.toml", f"{setting}\n")
        refused(home.steelyard("validate", "plain.toml"))
    home.write("steelyard.toml", 'judges = "command:./ask.sh"\n')
    assert home.steelyard("run", "plain.toml", "-m", "python:yes.py:ask", "--output", "out").returncode == 0
    home.times_run()
    refused(home.steelyard("judge", "out"), "program command:./ask.sh", "type: steelyard allow steelyard.toml")
    assert not home.times_run()
    assert home.steelyard("allow", "steelyard.toml").returncode == 0
    judged = home.steelyard("judge", "out")
    assert home.times_run(), judged.stderr


def test_an_agent_that_a_settings_file_declares_is_agreed_to_with_all_that_it_may_reach(home: Home) -> None:
    declared = '[agents.helper]\ncommand = "./ask.sh"\n'
    home.write("steelyard.toml", declared)
    ran = home.steelyard("run", "plain.toml", "-m", "agent:helper", "--output", "out")
    is_contained = "not contained" not in ran.stdout
    assert is_contained == (probe_isolation("full").holds or probe_isolation("bubblewrap").holds)
    rights = "1 contained agent" if is_contained else "code with your rights"
    assert f"this runs {rights}: the agent helper (./ask.sh)\n" in ran.stderr
    assert home.steelyard("resume", "out", "--samples", "2").returncode == ran.returncode
    for changed in (f'{declared}hosts = ["there.test"]\n', declared.replace("./ask.sh", "./ask.sh more")):
        home.write("steelyard.toml", changed)
        again = home.steelyard("resume", "out", "--samples", "3")
        assert again.returncode == 2
        assert f"runs {rights} that you have not agreed to: the agent helper" in again.stderr
        assert "type: steelyard allow out" in again.stderr
    assert "allowed the agent helper" in home.steelyard("allow", "steelyard.toml").stderr
    assert home.steelyard("resume", "out", "--samples", "3").returncode == ran.returncode
    home.forget()
    ran = home.steelyard("run", "function.toml", "-m", "agent:helper", "--agent-sandbox", "off", "--output", "free")
    assert "this runs code with your rights: the function score of " in ran.stderr
    assert ", the agent helper (./ask.sh more)\n" in ran.stderr


def test_agents_of_an_experiment_and_its_judges_are_asked_about(home: Home) -> None:
    home.write("tiers.toml", TIERS)
    assert home.steelyard("tiers", "tiers.toml", "--output", "out").returncode in (0, 3)
    assert home.times_run()
    home.forget()
    refused(home.steelyard("resume", "out", "--samples", "2"), "function ask of", "function score of")
    allowed = home.steelyard("allow", "tiers.toml")
    assert "function ask of" in allowed.stderr
    assert "function score of" in allowed.stderr
    assert not home.times_run()
    assert home.steelyard("resume", "out", "--samples", "2").returncode in (0, 3)
    assert home.times_run()


def test_an_environment_without_a_home_or_room_says_so_and_runs_what_is_named(home: Home) -> None:
    for state in ("relative", str(home.place / "checks.py")):
        nowhere = {"XDG_STATE_HOME": state, "HOME": "/proc/nowhere"}
        home.write("checks.py", f"{CHECK}# {state}")
        refused(home.steelyard("validate", "function.toml", **nowhere))
        ran = home.steelyard(
            "run", "function.toml", "-m", "command:./ask.sh", "--output", f"out-{len(state)}", **nowhere
        )
        assert ran.returncode == 0, ran.stderr
        assert "this could not be stored (" in ran.stderr
        allowed = home.steelyard("allow", "function.toml", **nowhere)
        assert allowed.returncode == 2
        assert "the agreement cannot be stored" in allowed.stderr


def test_a_line_cut_off_by_a_full_disk_allows_nothing_and_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = allowed_code_file()
    assert path == tmp_path / "steelyard" / "allowed"
    path.parent.mkdir()
    path.write_text("a" * 63)
    digests = [f"{number:064x}" for number in range(200)]
    with ThreadPool(8) as pool:
        assert set(pool.map(lambda one: allow_code([(one, "the function\nscore")]), digests)) == {""}
    assert allowed_code() >= set(digests)
    assert len(path.read_text().split()) == 1 + 200 * 3
    assert path.stat().st_mode & 0o77 == 0o44 or path.stat().st_mode & 0o77 == 0


LOOKS: Sequence[tuple[str, ...]] = (
    ("list",),
    ("show", "out"),
    ("show", "out", "a", "1"),
    ("report", "out", "-o", "report.html", "-o", "report.json"),
    ("query", "SELECT * FROM attempts"),
    ("suites", "function.toml"),
    ("compare", "--baseline", "out", "--current", "out"),
    ("tiers", "tiered"),
    ("merge", "shards/1", "shards/2"),
    (
        "allow",
        "steelyard-runs/out",
        "steelyard-runs/tiered",
        "function.toml",
        "custom.toml",
        "tiers.toml",
        "steelyard.toml",
    ),
)


def test_looking_at_any_kind_of_file_runs_nothing(home: Home) -> None:
    home.write("tiers.toml", TIERS)
    model = ("-m", "command:./ask.sh,python:yes.py:ask")
    assert home.steelyard("run", "function.toml", *model, "--output", "steelyard-runs/out").returncode == 0
    assert home.steelyard("tiers", "tiers.toml", "--output", "steelyard-runs/tiered").returncode in (0, 3)
    two = home.write("two.toml", (home.place / "function.toml").read_text() + CASE.replace('"a"', '"b"'))
    for shard in "12":
        ran = home.steelyard("run", str(two), *model, "--shard", f"{shard}/2", "--output", f"shards/{shard}")
        assert ran.returncode == 0, ran.stderr
    home.forget()
    home.write(
        "steelyard.toml", 'models = "command:./ask.sh"\njudges = "python:yes.py:ask"\nallow_weak_sandbox = true\n'
    )
    assert home.times_run()
    for look in LOOKS:
        ran = home.steelyard(*look)
        assert ran.returncode in (0, 3), (look, ran.stderr)
        assert not home.times_run(), look
    with Viewer(home.place / "steelyard-runs") as viewer:
        for page in ("/", "/runs/out", "/runs/tiered/tiers", "/compare?a=out&b=tiered", "/api/v1/runs/out/attempts"):
            viewer.get(page)
    assert not home.times_run()
