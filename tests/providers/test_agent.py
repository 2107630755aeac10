"""An agent works on a copy that is its own, what it changed is its answer, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard import evalsets
from steelyard.errors import InputError, ProviderError, Rejected
from steelyard.protocols import Delivery, OfferedModel, ProviderSettings
from steelyard.providers.agent import workspaces
from steelyard.providers.agent.provider import AgentProvider, connect, usage
from steelyard.providers.agent.usage import MAX_REPORTED_SESSIONS, MAX_REPORTED_TURNS, UsageMeter, told_usage
from steelyard.records import Answer, Attempt, Case, Cost, Verify
from support.asking import offers
from support.fault_server import FaultServer, in_turn, says
from support.toolchains import needs

pytestmark = needs("git")
EXAMPLES = Path(__file__).parents[2] / "examples" / "agent"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path) -> Iterator[Path]:
    """Where copies are made; empty again after every test."""
    place = tmp_path / "temporary"
    place.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(place)
    yield place
    tempfile.tempdir = before
    assert list(place.iterdir()) == []


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A folder to work on, which is the same after every test."""
    place = tmp_path / "workspace"
    (place / "src").mkdir(parents=True)
    (place / "src" / "sum.sh").write_text("echo $(($1 - $2))\n")
    (place / "notes.md").write_text("# Notes\n")
    before = workspaces.workspace_files(str(place))
    yield place
    assert workspaces.workspace_files(str(place)) == before


def attempt(workspace: Path | None, *, tier: str = "", number: int = 1, digest: str = "") -> Attempt:
    where = "" if workspace is None else str(workspace)
    case = Case(id="sum", prompt="Mend sum.sh.", workspace=where, verify=Verify(workspace_digest=digest))
    return Attempt(case=case, model="agent/x", system="Be quick.", tier=tier, number=number)


def ask(agent: AgentProvider, asked: Attempt, *, deadline: float = 60) -> Answer:
    async def within() -> Answer:
        async with asyncio.timeout(deadline):
            return await agent.ask(asked, Delivery())

    return asyncio.run(within())


def work(script: str, workspace: Path | None, **given: Any) -> Answer:
    """What an agent that is a shell script makes of a workspace."""
    return ask(AgentProvider(["sh", "-c", script], **given), attempt(workspace))


def ended(process: int) -> bool:
    """Whether a process has ended; the system may take a moment to bury it."""
    for _ in range(1000):
        try:
            status = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return True
        if status.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


# ---- the way there and back


def test_the_task_goes_in_and_what_was_changed_comes_out(workspace: Path) -> None:
    said = work("cat; echo; echo 'echo $(($1 + $2))' > src/sum.sh; sleep 0.2; echo done >&2", workspace)
    assert said.text.startswith("diff --git a/src/sum.sh b/src/sum.sh\nindex ")
    assert said.text.endswith("\n@@ -1 +1 @@\n-echo $(($1 - $2))\n+echo $(($1 + $2))\n")
    assert said.transcript == "Be quick.\n\nMend sum.sh.\ndone\n"
    assert (said.finish, said.exit_code, said.error) == ("stop", 0, "")
    assert (said.latency or 0) > 0
    assert (said.input_tokens, said.output_tokens, said.cost) == (None, None, None)


def test_it_is_told_which_attempt_it_is_and_what_else_it_is_given(workspace: Path) -> None:
    agent = AgentProvider(
        ["sh", "-c", 'echo "$STEELYARD_CASE $STEELYARD_NUMBER $STEELYARD_TIER $SKILL"'], environment={"SKILL": "x"}
    )
    assert ask(agent, attempt(workspace, tier="T2", number=3)).transcript == "sum 3 T2 x\n"


def test_every_attempt_has_a_copy_of_its_own(workspace: Path) -> None:
    agent = AgentProvider(["sh", "-c", "ls; pwd; touch new$STEELYARD_NUMBER"])

    async def both() -> list[Answer]:
        return await asyncio.gather(*(agent.ask(attempt(workspace, number=number), Delivery()) for number in (1, 2)))

    first, second = asyncio.run(both())
    assert first.transcript != second.transcript
    assert "b/new1" in first.text
    assert "new" not in first.transcript + second.transcript.replace("b/new", "")


def test_a_case_without_a_workspace_begins_with_an_empty_folder() -> None:
    said = work("ls -A; echo hi > hello.txt", None)
    assert said.transcript == ""
    assert "+++ b/hello.txt\n" in said.text


def test_files_that_are_added_are_there_and_are_no_part_of_the_answer(workspace: Path) -> None:
    files = {"AGENTS.md": "Be careful.\n", "tools/check": b"#!/bin/sh\necho checked\n", "notes.md": "ours\n"}
    said = work(
        "cat AGENTS.md notes.md; tools/check; echo more >> AGENTS.md; rm notes.md; touch own", workspace, files=files
    )
    assert said.transcript == "Be careful.\nours\nchecked\n"
    assert [line for line in said.text.splitlines() if line.startswith("diff")] == ["diff --git a/own b/own"]


def test_a_script_is_found_where_its_name_was_written(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("open('made', 'w').write('by the script')")
    (tmp_path / "agent.sh").write_text("#!/bin/sh\ntouch made\n")
    (tmp_path / "agent.sh").chmod(0o755)
    for line in ("python3 -B agent.py src", "./agent.sh"):
        assert "b/made" in ask(AgentProvider(line, beside=tmp_path), attempt(workspace)).text


def test_an_argument_of_any_other_program_stays_as_it_is(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("not this one\n")
    assert ask(AgentProvider("cat notes.md", beside=tmp_path), attempt(workspace)).transcript == "# Notes\n"


def test_no_repository_of_the_user_is_the_agents(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    said = work("git rev-parse --git-dir || echo none", workspace)
    assert "none\n" in said.transcript


def test_no_key_is_stored(workspace: Path) -> None:
    key = {"MODEL_API_KEY": "sk-0123456789", "SHORT_TOKEN": "yes"}
    half = "printf '%65530s'; printf $MODEL_API_KEY; printf '%300000s'"
    said = work("echo $MODEL_API_KEY $SHORT_TOKEN; echo key=$MODEL_API_KEY > .env", workspace, environment=key)
    assert said.transcript == "*** yes\n"
    assert "+key=***\n" in said.text
    assert "sk-0" not in work(half, workspace, environment=key).transcript


def test_it_is_connected_by_its_command_line() -> None:
    settings = ProviderSettings(type="agent", environment={"A": "b"}, time_limit_secs=3)
    (agent,) = connect("cat -", settings).values()
    assert offers(agent) == [OfferedModel("agent:cat -")]


def test_no_other_command_waits_for_it() -> None:
    code = (
        "import sys, steelyard.cli, steelyard.engine.run; sys.exit('steelyard.providers.agent.provider' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# ---- how it ends


def test_an_exit_code_is_a_fact_about_the_agent(workspace: Path) -> None:
    said = work("touch half; exit 3", workspace)
    assert (said.exit_code, said.finish) == (3, "stop")
    assert "b/half" in said.text


def test_a_signal_is_a_fact_as_well(workspace: Path) -> None:
    assert work("kill -SEGV $$", workspace).exit_code == -signal.SIGSEGV


def test_at_the_time_limit_it_is_ended_and_what_it_did_so_far_is_its_answer(workspace: Path) -> None:
    said = work("touch half; echo begun; trap '' TERM INT; while :; do sleep 60; done", workspace, time_limit=1)
    assert (said.finish, said.exit_code, said.transcript) == ("timeout", -signal.SIGKILL, "begun\n")
    assert "b/half" in said.text


DETACHED = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[1]) or not open(sys.argv[1]).read():
    time.sleep(0.01)
"""


@pytest.mark.parametrize("then", ["", "time.sleep(600)"])
@needs("setsid")
def test_what_it_started_and_set_free_ends_with_it(then: str, workspace: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    said = ask(AgentProvider([sys.executable, "-c", DETACHED + then, str(pid)], time_limit=2), attempt(workspace))
    assert said.finish == ("timeout" if then else "stop")
    assert ended(int(pid.read_text()))


def test_an_agent_that_multiplies_is_ended_all_the_same(workspace: Path) -> None:
    said = work("f() { sleep 0.2 & setsid sh -c 'sleep 600 & sleep 600' & }; f; f; f; f; wait", workspace, time_limit=1)
    assert said.finish == "timeout"


def test_an_agent_that_nobody_wants_any_more_is_ended_at_once(workspace: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    agent = AgentProvider([sys.executable, "-c", f"{DETACHED}\ntime.sleep(600)", str(pid)])

    async def give_up() -> None:
        asking = asyncio.create_task(agent.ask(attempt(workspace), Delivery()))
        while not pid.exists() or not pid.read_text():  # noqa: ASYNC110  a file can be looked at, not watched
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(give_up())
    assert ended(int(pid.read_text()))


def test_when_we_are_killed_the_agent_and_its_copy_go_too(workspace: Path, temporary: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        "import asyncio, sys\n"
        "from steelyard.providers.agent.provider import AgentProvider\n"
        "from steelyard.protocols import Delivery\n"
        "from steelyard.records import Attempt, Case\n"
        "case = Case(id='a', prompt='p', workspace=sys.argv[1])\n"
        "asyncio.run(AgentProvider(sys.argv[2:]).ask(Attempt(case=case, model='m'), Delivery()))\n"
    )
    agent = [sys.executable, "-c", f"{DETACHED}\ntime.sleep(600)", str(pid)]
    engine = subprocess.Popen(
        [sys.executable, "-c", code, str(workspace), *agent], env={**os.environ, "TMPDIR": str(temporary)}
    )
    while not pid.exists() or not pid.read_text():
        assert engine.poll() is None
        time.sleep(0.01)
    assert list(temporary.iterdir()) != []
    engine.kill()
    engine.wait()
    assert ended(int(pid.read_text()))
    for _ in range(500):
        if not list(temporary.iterdir()):
            break
        time.sleep(0.02)


def test_an_agent_that_kills_its_keeper_is_no_answer_and_ends_as_well(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="the process that supervised the agent was killed"):
        work(f"sleep 600 & echo $! > {tmp_path}/pid; kill -KILL $PPID; wait", workspace)
    assert ended(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("line", ["no-such-program --x", "", "'unclosed", "./not-here.sh"])
def test_a_program_that_is_not_there_is_found_out_before_anything_is_asked(line: str) -> None:
    with pytest.raises(InputError, match=r"^agent:"):
        AgentProvider(line)


def test_a_program_that_cannot_be_started_is_rejected_in_one_sentence(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"\x7fELF nothing")
    (tmp_path / "broken").chmod(0o755)
    with pytest.raises(Rejected, match=r"broken cannot be started: Exec format error$"):
        ask(AgentProvider(str(tmp_path / "broken")), attempt(workspace))


def test_a_workspace_that_changed_is_not_worked_on(workspace: Path) -> None:
    agent = AgentProvider(["touch", "x"])
    assert ask(
        agent, attempt(workspace, digest=workspaces.workspace_digest(workspaces.workspace_files(str(workspace))))
    ).text
    with pytest.raises(Rejected, match="changed since the eval set was loaded"):
        ask(agent, attempt(workspace, digest="another"))
    with pytest.raises(Rejected, match="is no longer a folder"):
        ask(agent, attempt(workspace / "gone"))


@pytest.mark.parametrize("given", [{"time_limit": 0}, {"time_limit": float("nan")}, {"files": {"../x": ""}}])
def test_what_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        AgentProvider("cat", **given)


# ---- what it may do to itself


def test_a_gigabyte_of_output_is_heard_and_not_kept(workspace: Path) -> None:
    usage = json.dumps({"input_tokens": 7, "output_tokens": 8})
    said = work(f"echo first; head -c 1000000000 /dev/zero; echo; echo '{usage}'; echo last", workspace)
    assert said.transcript.startswith("first\n")
    assert said.transcript.endswith(f"{usage}\nlast\n")
    assert " bytes left out ...]" in said.transcript
    assert len(said.transcript) < 150_000
    assert (said.input_tokens, said.output_tokens) == (7, 8)


@pytest.mark.parametrize(
    "end",
    [
        "rm -rf * .[a-z]*",
        "rm -rf ../workspace; ln -s /etc ../workspace",
        "rm -rf ../*",
        'cd ..; rm -rf "$PWD"',
    ],
)
def test_an_agent_may_delete_everything(end: str, workspace: Path) -> None:
    said = work(end, workspace)
    assert [line for line in said.text.splitlines() if line.startswith("diff")] == [
        "diff --git a/notes.md b/notes.md",
        "diff --git a/src/sum.sh b/src/sum.sh",
    ]
    assert said.text.count("deleted file mode") == 2


def test_a_link_out_of_the_folder_is_only_a_link(workspace: Path) -> None:
    said = work("ln -s /etc/passwd secrets; rm -r src; ln -s /etc src", workspace)
    assert said.text.count("new file mode 120000") == 2
    assert "+/etc/passwd\n" in said.text
    assert "root:" not in said.text


def test_bytes_are_kept_and_what_is_huge_is_named(workspace: Path) -> None:
    said = work("printf '\\377\\000' > picture; truncate -s 5G core; printf '\\351\\n' > latin", workspace)
    assert said.error == "left out of the patch: core (5.4 GB)"
    assert said.text.count("GIT binary patch") == 2


def test_folders_that_are_locked_or_deep_go_as_well(workspace: Path) -> None:
    said = work(f"mkdir -p a/b {'d/' * 500}; touch a/b/c; chmod 000 a/b a; chmod 000 notes.md", workspace)
    assert said.exit_code == 0
    assert "b/a/b/c" in said.text


# ---- what it tells of itself


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("", {}),
        ("no JSON\n", {}),
        ('{"result": "done"}', {}),
        ('{"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5}', {"input": 3, "output": 4, "usd": 0.5}),
        ('working\n{"input_tokens": 3}\n{"type": "end"}\nbye\n', {"input": 3}),
        ('{\n  "usage": {\n    "output_tokens": 4\n  }\n}\n', {"output": 4}),
        ('[{"type": "init"}, {"type": "result", "total_cost_usd": 0.25}]', {"usd": 0.25}),
        (
            '{"usage": {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}}',
            {"input": 125, "cached": 100},
        ),
        (
            '{"usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}}',
            {"input": 12, "output": 3, "cached": 8},
        ),
        (
            '{"usage": {"completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}}}',
            {"output": 3, "reasoning": 2},
        ),
        (
            '{"usage": {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 1}}',
            {"input": 9, "output": 1, "cached": 4},
        ),
        ('{"input_tokens": 0, "output_tokens": 0, "cost_usd": 0}', {"input": 0, "output": 0, "usd": 0.0}),
        ('{"input_tokens": -1, "output_tokens": true, "cost_usd": "1"}', {}),
        ('{"input_tokens": 1e3, "cost_usd": -0.5, "output_tokens": 99999999999999999999999}', {}),
        ('{"usage": [1], "prompt_tokens": 6}', {"input": 6}),
        ("{" * 100_000, {}),
        ("[" * 100_000, {}),
    ],
)
def test_tokens_and_cost_are_what_it_says_and_unknown_is_not_zero(output: str, expected: dict[str, float]) -> None:
    told = Answer(text="", **usage(told_usage(output)))
    names: dict[str, float | None] = {
        "input": told.input_tokens,
        "output": told.output_tokens,
        "cached": told.cached_tokens,
    }
    names |= {"reasoning": told.reasoning_tokens, "usd": told.cost.usd if told.cost else None}
    assert {name: value for name, value in names.items() if value is not None} == expected
    assert told.cost is None or told.cost == Cost(usd=expected["usd"], source="the agent")


CODEX_TURN = '{"type": "turn.completed", "usage": {"input_tokens": %d, "cached_input_tokens": %d, "output_tokens": %d}}'
CLAUDE_TURN = (
    '{"type": "assistant", "message": {"id": "%s", "usage": {"input_tokens": 4, "cache_creation_input_tokens": 100, '
    '"cache_read_input_tokens": 50, "output_tokens": %d, "cache_creation": {"ephemeral_1h_input_tokens": 60}}}}'
)
CLAUDE_RESULT = (
    '{"type": "result", "session_id": "%s", "total_cost_usd": %s, "usage": {"input_tokens": 8, "output_tokens": %d}}'
)
OPENHANDS = (
    '{"id": 7, "llm_metrics": {"accumulated_cost": %s, "accumulated_token_usage": {"prompt_tokens": %d, '
    '"completion_tokens": 9, "cache_read_tokens": 3, "cache_write_tokens": 2}}}'
)
OPENHANDS_CALLS = (
    '{"metrics": {"accumulated_cost": 0.5, "token_usages": [{"prompt_tokens": 5, "completion_tokens": 2}, '
    '{"prompt_tokens": 7, "completion_tokens": 1}]}}'
)
SWE_AGENT = (
    '{"info": {"model_stats": {"instance_cost": 0.75, "tokens_sent": 900, "tokens_received": 40, "api_calls": 6}}}'
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [CODEX_TURN % (1000, 400, 50), "noise", CODEX_TURN % (3000, 2000, 70)],
            {"input_tokens": 4000, "cached_tokens": 2400, "output_tokens": 120},
        ),
        (
            # a logger around it
            [
                '{"log_type": "stream_output", "at": 1.5, "data": %s}' % (CODEX_TURN % (1000, 400, 50)),
                '{"data": {"x": 1}}',
            ],
            {"input_tokens": 1000, "cached_tokens": 400, "output_tokens": 50},
        ),
        (
            # the same message is told while it grows, and nothing tells of all
            [CLAUDE_TURN % ("a", 1), CLAUDE_TURN % ("a", 9), CLAUDE_TURN % ("b", 5)],
            {
                "input_tokens": 308,
                "output_tokens": 14,
                "cached_tokens": 100,
                "cache_write_tokens": 200,
                "cache_write_1h_tokens": 120,
            },
        ),
        (
            [CLAUDE_TURN % ("a", 9), CLAUDE_RESULT % ("s", "0.5", 30)],
            {"input_tokens": 8, "output_tokens": 30, "cost_usd": 0.5},
        ),
        (
            # a later word of a session holds for all of it, and sessions are added up
            [CLAUDE_RESULT % ("s", "0.5", 30), CLAUDE_RESULT % ("s", "0.75", 40), CLAUDE_RESULT % ("t", "0.25", 2)],
            {"input_tokens": 16, "output_tokens": 42, "cost_usd": 1.0},
        ),
        (
            [OPENHANDS % ("0.1", 50), OPENHANDS % ("0.25", 90)],
            {"input_tokens": 90, "output_tokens": 9, "cached_tokens": 3, "cache_write_tokens": 2, "cost_usd": 0.25},
        ),
        (
            # what a second model used that drafts its edits is a part of the total, and reported after it
            [OPENHANDS % ("0.1", 35205), OPENHANDS % ("0.02", 2780)],
            {"input_tokens": 35205, "output_tokens": 9, "cached_tokens": 3, "cache_write_tokens": 2, "cost_usd": 0.1},
        ),
        (
            # a model without a known price is not free
            [OPENHANDS % ("0", 50)],
            {"input_tokens": 50, "output_tokens": 9, "cached_tokens": 3, "cache_write_tokens": 2},
        ),
        (
            # an older version: every call, and no sum
            [OPENHANDS_CALLS],
            {"input_tokens": 12, "output_tokens": 3, "cost_usd": 0.5},
        ),
        ([SWE_AGENT], {"input_tokens": 900, "output_tokens": 40, "cost_usd": 0.75}),
    ],
)
def test_turns_are_added_up_where_no_line_tells_of_all(lines: list[str], expected: dict[str, float]) -> None:
    output = "\n".join(lines)
    assert told_usage(output) == expected
    meter = UsageMeter()
    for start in range(0, len(output), 7):
        meter.add(output[start : start + 7].encode())
    assert meter.final_usage() == expected


@pytest.mark.parametrize(
    ("limits", "line", "finish"),
    [
        ({"max_usd": 0.5}, CLAUDE_RESULT % ("s", "0.6", 1), "budget"),
        ({"max_usd": 0.5, "prices": {"input": 100, "output": 100}}, CODEX_TURN % (9000, 0, 1000), "budget"),
        ({"max_turns": 1}, "\\n".join([CODEX_TURN % (1, 0, 1)] * 2), "max_turns"),
    ],
)
def test_an_agent_is_ended_at_its_limit_and_what_it_changed_counts(
    workspace: Path, limits: dict[str, Any], line: str, finish: str
) -> None:
    said = work(f"echo more >> notes.md; printf '%b\\n' '{line}'; sleep 600", workspace, limits=limits)
    assert (said.finish, said.text.count("+more")) == (finish, 1)
    assert said.input_tokens


def test_an_agent_within_its_limits_is_let_be(workspace: Path) -> None:
    limits = {"max_usd": 0.6, "max_turns": 2, "prices": {"input": 1, "output": 1}}
    said = work(f"printf '%b\\n' '{CODEX_TURN % (9, 0, 1)}' '{CODEX_TURN % (9, 0, 1)}'", workspace, limits=limits)
    assert (said.finish, said.input_tokens, said.output_tokens) == ("stop", 18, 2)


def test_a_line_that_does_not_end_is_no_report_of_tokens() -> None:
    meter = UsageMeter()
    for _ in range(6):
        meter.add(b"{" + b" " * (1 << 20))
    meter.add(b'\n{"input_tokens": 1}\n')
    assert meter.usage == {"input_tokens": 1}


def test_reports_without_end_do_not_fill_our_memory() -> None:
    meter = UsageMeter()
    turns = '{"type": "assistant", "message": {"id": "m%d"}, "usage": {"input_tokens": 1, "output_tokens": 1}}\n'
    totals = '{"session_id": "s%d", "usage": {"input_tokens": 2, "output_tokens": 2}}\n'
    for line, most, each in ((turns, MAX_REPORTED_TURNS, 1), (totals, MAX_REPORTED_SESSIONS, 2)):
        meter.add("".join(line % number for number in range(most + 500)).encode())
        assert meter.usage == {"input_tokens": most * each, "output_tokens": most * each}


# ---- the agent that is shipped


def test_the_example_asks_makes_edits_runs_the_tests_and_tells_what_it_took(
    server: FaultServer, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    (case, *_) = evalsets.load([tmp_path / "agent" / "agent.toml"]).cases
    source = (EXAMPLES / "workspace" / "durations.py").read_text()
    mended = source.replace("total = int", "total += int").replace('{"h"', '{"d": 86400, "h"')
    server.script = in_turn(
        says("I would rather not."),
        says("```json\n" + json.dumps({"files": {"durations.py": source + "\n", "new/notes.md": "x"}}) + "\n```"),
        says(json.dumps({"files": {"durations.py": mended, "new/notes.md": None}})),
    )
    agent = AgentProvider(
        "python3 -B agent/agent.py --model small --test 'python3 -B run_tests.py'",
        environment={"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"},
        beside=tmp_path,
    )
    said = ask(agent, Attempt(case=case, model="agent/x"))
    assert (said.exit_code, said.input_tokens, said.output_tokens) == (0, 30, 15)
    assert "round 2: tests fail\n" in said.transcript
    assert "round 3: all is well\n" in said.transcript
    assert [line for line in said.text.splitlines() if line.startswith("diff")] == [
        "diff --git a/durations.py b/durations.py"
    ]
    first, _, third = (request.body["messages"] for request in server.requests)
    assert "=== test_durations.py" in first[1]["content"]
    assert "KeyError" in third[-1]["content"]


def test_the_example_writes_nothing_outside_of_its_folder(server: FaultServer, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    server.script = lambda request: says(json.dumps({"files": {str(outside): "x", "../../up": "y"}}))
    agent = AgentProvider(
        ["python3", "-B", str(EXAMPLES / "agent.py"), "--model", "m", "--rounds", "2"],
        environment={"OPENAI_BASE_URL": f"{server.url}/v1"},
    )
    said = ask(agent, attempt(workspace))
    assert (said.text, said.exit_code) == ("", 1)
    assert not outside.exists()


CODEX_TOTALS = {"input_tokens": 14475, "cached_input_tokens": 2432, "output_tokens": 216, "total_tokens": 14691}
CODEX_LAST = {"input_tokens": 475, "cached_input_tokens": 432, "output_tokens": 16, "total_tokens": 491}


def openhands_metrics(prompt: int, completion: int, read: int, written: int, usd: float) -> dict[str, Any]:
    tokens = {"model": "openai/gpt-4o", "prompt_tokens": prompt, "completion_tokens": completion}
    tokens |= {"cache_read_tokens": read, "cache_write_tokens": written, "reasoning_tokens": 0, "context_window": 0}
    return {"model_name": "openai/gpt-4o", "accumulated_cost": usd, "accumulated_token_usage": tokens, "costs": []}


OPENHANDS_SERVICES = {
    "usage_to_metrics": {
        "agent": openhands_metrics(100, 10, 30, 5, 0.25),
        "condenser": openhands_metrics(20, 2, 0, 0, 0.05),
    }
}


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        pytest.param(
            [
                {"type": "thread.started", "thread_id": "01a0ccee"},
                {
                    "type": "turn.completed",
                    "usage": {
                        "input_tokens": 19508,
                        "cached_input_tokens": 11008,
                        "cache_write_input_tokens": 25,
                        "output_tokens": 5,
                        "reasoning_output_tokens": 2,
                    },
                },
            ],
            {
                "input_tokens": 19508,
                "cached_tokens": 11008,
                "cache_write_tokens": 25,
                "output_tokens": 5,
                "reasoning_tokens": 2,
            },
            id="codex exec, which names what it wrote to a cache",
        ),
        pytest.param(
            [
                {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
                *[
                    {
                        "type": "event_msg",
                        "payload": {
                            "type": "token_count",
                            "info": {"total_token_usage": CODEX_TOTALS, "last_token_usage": CODEX_LAST},
                        },
                    }
                ]
                * 2,
            ],
            {"input_tokens": 14475, "cached_tokens": 2432, "output_tokens": 216},
            id="a rollout of codex, which says its totals twice",
        ),
        pytest.param(
            [{"stats": OPENHANDS_SERVICES}],
            {"input_tokens": 120, "cached_tokens": 30, "cache_write_tokens": 5, "output_tokens": 12, "cost_usd": 0.3},
            id="the state of an OpenHands conversation, by service",
        ),
        pytest.param(
            [{"kind": "ConversationStateUpdateEvent", "key": "stats", "value": OPENHANDS_SERVICES}],
            {"input_tokens": 120, "cost_usd": 0.3},
            id="an event of OpenHands",
        ),
        pytest.param(
            [
                {
                    "info": {"model_stats": {"instance_cost": 0.45, "api_calls": 7}, "exit_status": "Submitted"},
                    "messages": [],
                }
            ],
            {"cost_usd": 0.45},
            id="a trajectory of mini-swe-agent",
        ),
    ],
)
def test_what_agents_of_today_tell_is_read(lines: list[dict[str, Any]], wanted: dict[str, float]) -> None:
    told = told_usage("".join(json.dumps(line) + "\n" for line in lines))
    assert {name: told.get(name) for name in wanted} == pytest.approx(wanted)
