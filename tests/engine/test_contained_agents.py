"""Agents that declare what they need are contained; of the others it is said that they are not."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard import run
from steelyard.cli.main import main
from steelyard.engine.options import RunOptions
from steelyard.engine.resume import resume
from steelyard.errors import ExitCode, InputError
from steelyard.records import AgentSettings, Case, Failure, Reply, Verify
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, probe_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.settings import Settings, load
from steelyard.store.journal import StoredRun
from support.text_server import text_server

pytestmark = pytest.mark.skipif(
    not (probe_isolation("full").holds or probe_isolation("bubblewrap").holds), reason="nothing here contains agents"
)

AGENT = """
import json, os, sys
import httpx2
print(json.dumps(sorted(name for name in os.environ if name in ("DECLARED", "OTHER_API_KEY"))))
print("the key is", os.environ["DECLARED"])
print("read", os.path.exists(sys.argv[2]))
try:
    httpx2.get("http://undeclared.test/").raise_for_status()
except httpx2.HTTPError as error:
    print(type(error).__name__)
answer = httpx2.get(sys.argv[1], timeout=60).raise_for_status().text
open("answer.txt", "w").write(answer)
os.chmod("answer.txt", 0o755)
os.symlink("/etc/passwd", "link")
os.mkfifo("fifo")
with open("large", "wb") as large: large.truncate(300 << 20)
os.makedirs("locked/deep")
open("locked/deep/file", "w").write("x")
os.chmod("locked", 0)
for _ in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
os.chmod("/steelyard/workspace", 0)
os.chmod("/steelyard", 0)
"""


EVAL_SET = """
[eval_set]
id = "s"
name = "s"
[[cases]]
id = "a"
name = "a"
prompt = "p"
workspace = "workspace"
verify = { kind = "command", test = "true", fixes = ["x"] }
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with text_server("forty-two\n") as address:
        yield address


@pytest.fixture
def case(tmp_path: Path) -> Case:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "notes.md").write_text("# Notes\n")
    verify = Verify(kind="command", test="grep -q forty-two answer.txt")
    return Case(id="a", prompt="find the answer", workspace=str(tmp_path / "workspace"), verify=verify)


def settings(command: str, **declared: Any) -> Settings:
    return Settings(agents={"finder": AgentSettings(command=command, **declared)})


def replies(folder: Path) -> list[Reply]:
    return [fact for fact in StoredRun(folder).facts() if isinstance(fact, Reply)]


def test_a_declared_agent_does_its_work_and_reaches_nothing_else(
    case: Case, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    command = f"{sys.executable} agent.py http://{server}/ {tmp_path / 'workspace'}"
    environment = {**os.environ, "DECLARED": "0123456789", "OTHER_API_KEY": "9876543210"}
    means = RunOptions(
        settings=settings(command, hosts=(server,), keys=("DECLARED",)), agent_sandbox="on", environment=environment
    )
    done = run([case], models="agent:finder", output=tmp_path / "run", means=means)
    (reply,) = replies(tmp_path / "run")
    assert reply.answer.transcript == (
        '["DECLARED"]\nthe key is ***\nread False\nHTTPStatusError\n'
        "[steelyard: refused undeclared.test:80: not among the hosts that this agent declares]\n"
    )
    assert (done.info.names, done.summary.models[0].correct, done.info.uncontained) == (("agent/finder",), 1, {})
    assert not any("not contained" in warning for warning in done.summary.warnings)
    assert reply.answer.error == "left out of the patch: large (314.6 MB)"
    patched = [line for line in reply.answer.text.splitlines() if line.startswith(("diff", "new file"))]
    assert patched == [
        "diff --git a/answer.txt b/answer.txt",
        "new file mode 100755",
        "diff --git a/link b/link",
        "new file mode 120000",
        "diff --git a/locked/deep/file b/locked/deep/file",
        "new file mode 100644",
    ]


def test_when_we_are_killed_nothing_of_a_contained_agent_goes_on(case: Case, tmp_path: Path) -> None:
    begun, seconds = tmp_path / "begun", str(100_000_000 + os.getpid())  # nobody else sleeps so long
    begun.mkdir()
    (tmp_path / "steelyard.toml").write_text(
        f"""[agents.sleeper]\ncommand = "sh -c 'setsid sleep {seconds} & touch {begun}/now; sleep {seconds}'"\nwritable_folders = ["begun"]\n"""
    )
    (tmp_path / "evals.toml").write_text(EVAL_SET)
    command = [
        sys.executable,
        "-m",
        "steelyard.cli",
        "run",
        "evals.toml",
        "-m",
        "agent:sleeper",
        "--agent-sandbox",
        "on",
    ]
    engine = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        while not (begun / "now").exists() or not running(b"sleep", seconds.encode()):
            assert engine.poll() is None, engine.communicate()
            time.sleep(0.02)
    finally:
        engine.kill()
        engine.communicate()
    for _ in range(500):
        if not running(b"sleep", seconds.encode()):
            return
        time.sleep(0.02)
    pytest.fail("it went on")


def running(*words: bytes) -> bool:
    """Whether a program with these words runs anywhere on this machine."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if tuple((process / "cmdline").read_bytes().split(b"\0")[: len(words)]) == words:
                return True
    return False


def test_what_is_not_contained_is_said_and_can_be_refused(case: Case, tmp_path: Path) -> None:
    declared = settings("/bin/sh -c 'echo forty-two > answer.txt'")
    weak = ZygoteSandbox(ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index("process")])
    undeclared = "agent:/bin/sh -c 'echo forty-two > answer.txt'"
    tried: dict[str, tuple[str, RunOptions]] = {
        "does not declare what it needs": (undeclared, RunOptions(settings=declared)),
        "level process has no network of its own": (
            "agent:finder",
            RunOptions(settings=declared, sandbox=weak, allow_weak_sandbox=True),
        ),
        "--agent-sandbox off": ("agent:finder", RunOptions(settings=declared, agent_sandbox="off")),
    }
    for number, (reason, (model, means)) in enumerate(tried.items()):
        done = run([case], models=model, output=tmp_path / str(number), means=means)
        assert done.summary.models[0].correct == 1
        (warning,) = [text for text in done.summary.warnings if "agent not contained" in text]
        assert reason in warning
        if means.agent_sandbox == "auto":
            with pytest.raises(InputError, match="cannot be contained, which --agent-sandbox on requires") as refused:
                run([case], models=model, output=tmp_path / "no", means=means._replace(agent_sandbox="on"))
            assert reason in str(refused.value)
    # a run that was once not contained says so for good, and one that no longer is says so from then on
    contained = run([case], models="agent:finder", output=tmp_path / "run", means=RunOptions(settings=declared))
    assert contained.info.uncontained == {}
    again = resume(tmp_path / "run", samples=2, means=RunOptions(settings=declared, agent_sandbox="off"))
    assert again.info.uncontained == {"agent/finder": "--agent-sandbox off"}
    last = resume(tmp_path / "run", samples=3, means=RunOptions(settings=declared))
    assert StoredRun(tmp_path / "run").info.uncontained == last.info.uncontained == again.info.uncontained
    with pytest.raises(InputError, match="agent:finder cannot be contained"):
        resume(tmp_path / "run", samples=4, means=RunOptions(settings=declared, sandbox=weak, agent_sandbox="on"))


def test_the_command_line_refuses_with_exit_code_2(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evals.toml").write_text(EVAL_SET)
    assert main(["run", "evals.toml", "-m", "agent:true", "--agent-sandbox", "on"]) == ExitCode.BAD_INPUT
    assert "--agent-sandbox on" in capsys.readouterr().err
    # a settings file may say so as well, for pytest too
    (tmp_path / "steelyard.toml").write_text('agent_sandbox = "on"\n')
    assert main(["run", "evals.toml", "-m", "agent:true"]) == ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ({"hosts": ("https://x.test/",)}, r'\[agents.finder\]: hosts: "https://x.test/" is not a host'),
        ({"keys": ("NOT_SET_ANYWHERE",)}, r"\[agents.finder\]: keys names NOT_SET_ANYWHERE, which is not set"),
        ({"folders": ("/not/there",)}, r"\[agents.finder\]: /not/there: no such folder"),
        ({"folders": ("/",)}, r"\[agents.finder\]: / cannot be shown to an agent"),
        ({"writable_folders": ("/proc/self",)}, r"\[agents.finder\]: /proc/self cannot be shown to an agent"),
        ({"writable_folders": ("/usr/../dev",)}, r"cannot be shown to an agent"),
    ],
)
def test_a_declaration_that_cannot_be_kept_stops_the_run_before_it_begins(
    declared: dict[str, Any], reason: str, case: Case, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=reason):
        run(
            [case],
            models="agent:finder",
            output=tmp_path / "run",
            means=RunOptions(settings=settings("true", **declared)),
        )
    assert not (tmp_path / "run").exists()


def test_what_a_declaration_means_is_never_guessed(tmp_path: Path) -> None:
    file = tmp_path / "steelyard.toml"
    file.write_text('[agents.finder]\ncommand = "find"\nhosts = ["a.test"]\n')
    assert load(file, {})[0].agents == {"finder": AgentSettings(command="find", hosts=("a.test",))}
    for text, reason in {
        "[agents]\nfinder = 1\n": r"Expected `object`.*agents",
        '[agents.finder]\ncommand = "x"\nhost = ["a"]\n': r'unknown key "host" in \[agents.finder\] .*did you mean "hosts"',
        "[agents.finder]\n": r"missing required field `command`.*agents",
        '[agents.finder]\ncommand = "x"\nhosts = "a"\n': r"Expected `array`.*agents",
    }.items():
        file.write_text(text)
        with pytest.raises(InputError, match=reason):
            load(file, {})


@pytest.mark.parametrize("is_declared", [True, False])
def test_an_agent_that_finds_no_interpreter_is_no_wrong_answer(case: Case, is_declared: bool, tmp_path: Path) -> None:
    program = tmp_path / "shim.sh"
    program.write_text("#!/bin/sh\nexec /nowhere/bin/python3 agent.py\n")
    program.chmod(0o755)
    means = RunOptions(settings=settings(str(program))) if is_declared else RunOptions()
    model = "agent:finder" if is_declared else f"agent:{program}"
    done = run([case], models=model, output=tmp_path / "run", means=means)
    assert not replies(done.folder)
    (failed,) = [fact for fact in StoredRun(done.folder).facts() if isinstance(fact, Failure)]
    assert "exit code 127 and changed nothing" in failed.message
    assert "/nowhere/bin/python3" in failed.message
    assert ("name the folders" in failed.message) == is_declared
