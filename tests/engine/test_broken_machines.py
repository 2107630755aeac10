"""Runs on machines that are broken on purpose: a right answer is missing at worst, never wrong, and is judged once the machine works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from attacks.scenes import interpreter, run_as
from steelyard.analysis.scoring import is_correct
from steelyard.records import Case, Expectations, Pair, Verify
from steelyard.store.journal import StoredRun
from support.command_line import steelyard
from support.facts import Facts, facts
from support.studies import with_slow
from support.toolchains import unavailable

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="only root can break a machine of its own",
)
STEELYARD = (sys.executable, "-m", "steelyard.cli")


def command_case(
    name: str, language: str, file: str, test_file: str, tests: str, reference: str, **verify: Any
) -> Case:
    return Case(
        id=name,
        prompt=name,
        name=name,
        language=language,
        timeout_secs=20,
        reference=reference,
        verify=Verify(kind="command", answer=file, files={test_file: tests}, **verify),
    )


C_RIGHT, C_WRONG = "int twice(int number) { return 2 * number; }", "int twice(int number) { return 2 * number }"
C = command_case(
    "c",
    "c",
    "answer.c",
    "test.c",
    "#include <assert.h>\nint twice(int);\nint main(void) { assert(twice(2) == 4); return 0; }\n",
    C_RIGHT,
    build="cc -o test test.c answer.c",
    test="./test",
)
NODE_RIGHT, NODE_WRONG = "export const twice = (number) => 2 * number", "export const twice = (number) => 3 * number"
NODE = command_case(
    "node",
    "javascript",
    "answer.mjs",
    "test.mjs",
    'import { twice } from "./answer.mjs"\nif (twice(2) !== 4) process.exit(1)\n',
    NODE_RIGHT,
    test="node test.mjs",
)
RUST_RIGHT, RUST_WRONG = "pub fn twice(number: i64) -> i64 { 2 * number }", "pub fn twice(number: i64) -> i64 { number"
RUST = Case(
    id="rust",
    prompt="rust",
    language="rust",
    timeout_secs=60,
    reference=RUST_RIGHT,
    expectations=Expectations(
        test_file="#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn two() { assert_eq!(twice(2), 4); }\n}\n"
    ),
)
PYTHON_RIGHT, PYTHON_WRONG = "def twice(number):\n    return 2 * number", "def twice(number:\n"
PYTHON = Case(
    id="python",
    prompt="python",
    language="python",
    reference=PYTHON_RIGHT,
    expectations=Expectations(test_file="assert twice(2) == 4\n"),
)
ANSWERS = {
    "c": (C_RIGHT, C_WRONG),
    "javascript": (NODE_RIGHT, NODE_WRONG),
    "rust": (RUST_RIGHT, RUST_WRONG),
    "python": (PYTHON_RIGHT, PYTHON_WRONG),
}

COMPILER = 'place=$(readlink -f /usr/bin/cc)\nprintf "#!/bin/sh\\necho cc: internal error >&2\\nexit 4\\n" >tool\n'
NODE_TOOL = "place=$(readlink -f /usr/bin/node)\n"
PUT = 'chmod 755 tool\nmount --bind tool "$place"\n'
BREAKAGES: dict[str, tuple[str, tuple[Case, ...]]] = {
    "cc fails": (f"{COMPILER}{PUT}", (C, RUST)),
    "cc1 is missing": ('touch tool\nplace=$(cc -print-prog-name=cc1)\nmount --bind tool "$place"\n', (C,)),
    "cc1 is killed": (
        f'place=$(cc -print-prog-name=cc1)\nprintf "#!/bin/sh\\nkill -9 \\$\\$\\n" >tool\n{PUT}',
        (C,),
    ),
    "node lacks a library": (
        f'{NODE_TOOL}printf "#!/bin/sh\\necho error while loading shared libraries >&2\\nexit 127\\n" >tool\n{PUT}',
        (NODE,),
    ),
    "node is killed": (f'{NODE_TOOL}printf "#!/bin/sh\\nkill -9 \\$\\$\\n" >tool\n{PUT}', (NODE,)),
    "node lacks threads": (
        f'{NODE_TOOL}printf "#!/bin/sh\\necho Assertion failed: uv_thread_create >&2\\nkill -6 \\$\\$\\n" >tool\n{PUT}',
        (NODE,),
    ),
}
"""What is done to a machine, and the cases that no answer can pass there."""
SYSROOT = "root=$(rustc --print sysroot)\n"
LINKERS = '/usr/bin/ld /usr/bin/ld.bfd /usr/bin/ld.gold /usr/bin/ld.lld /usr/bin/ld.mold /usr/bin/mold "$root"/lib/rustlib/*/bin/*lld "$root"/lib/rustlib/*/bin/gcc-ld/*'
NO_LINKER = (
    f'{SYSROOT}printf "#!/bin/sh\\necho ld: cannot open output >&2\\nexit 1\\n" >tool\nchmod 755 tool\n'
    f'for place in {LINKERS}\ndo test ! -f "$place" || mount --bind tool "$(readlink -f "$place")"\ndone\n'
)
RUST_TOOL = (
    f'{SYSROOT}mkdir real\nmount --bind "$root" real\n'
    'printf "#!/bin/sh\\ncase \\"\\$*\\" in *-V*|*--version*|*--print*) exec $PWD/real/bin/TOOL \\"\\$@\\";; esac\\nEND\\n" >tool\n'
    'place="$root/bin/TOOL"\n'
)
BREAKAGES_OF_COMPILERS: dict[str, tuple[str, tuple[Case, ...]]] = {
    "no linker works": (NO_LINKER, (C, RUST)),
    "rustc is killed": (RUST_TOOL.replace("TOOL", "rustc").replace("END", "kill -9 \\$\\$") + PUT, (RUST,)),
    "rustc has a bug": (
        RUST_TOOL.replace("TOOL", "rustc").replace("END", "echo error: internal compiler error >\\&2; exit 101") + PUT,
        (RUST,),
    ),
}
"""The same, of compilers and linkers that tell their version."""


SLOW_BREAKAGES = [name for name in BREAKAGES | BREAKAGES_OF_COMPILERS if name not in ("cc fails", "node is killed")]


def write_set(folder: Path, cases: tuple[Case, ...]) -> None:
    """An eval set of these cases, each also without its reference, and a recording of a right and a wrong answer to each."""
    every = [each for case in cases for each in (case, replace(case, id=f"{case.id} alone", reference=""))]
    folder.mkdir(exist_ok=True)
    with (folder / "cases.jsonl").open("w") as file:
        for case in every:
            file.write(json.dumps(msgspec.to_builtins(case)) + "\n")
    with (folder / "samples.jsonl").open("w") as file:
        for case in every:
            for answer in ANSWERS[case.language]:
                text = f"```{case.language}\n{answer}\n```\n"
                file.write(json.dumps({"case_id": case.id, "raw_response": text}) + "\n")


def run_broken(folder: Path, setup: str, *arguments: str) -> int:
    """Run a command of ours on a machine that `setup` broke, which nobody else sees; returns its exit code."""
    if not setup:
        mended = steelyard(folder, *arguments)
        assert "Traceback" not in mended.stderr, mended.stderr
        return mended.returncode
    script = f'set -e\ncd "$1"\nshift\n{setup}exec "$@"\n'
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(folder), *STEELYARD, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    print(ran.stdout, ran.stderr)
    return ran.returncode


RUN = ("run", "cases.jsonl", "--models", "replay:samples.jsonl", "--output", "run")


def counting(folder: Path) -> dict[str, list[bool]]:
    """Whether the attempts at each case are correct, the right answer first; only of verdicts that count."""
    stored = StoredRun(folder / "run")
    cases = {case.id: case for case in stored.cases}
    found: Facts = facts(folder / "run")
    taken_back = {failure.key for failure in found.failures}
    verdicts = sorted(
        (verdict for verdict in found.verdicts if verdict.key not in taken_back), key=lambda verdict: verdict.number
    )
    return {
        name: [is_correct(case, verdict.found) for verdict in verdicts if verdict.case == name]
        for name, case in cases.items()
    }


@pytest.mark.parametrize("breakage", with_slow(["cc fails", "node is killed"], SLOW_BREAKAGES))
def test_a_broken_toolchain_makes_answers_missing_and_resume_judges_them_when_it_is_mended(
    breakage: str, tmp_path: Path
) -> None:
    setup, cases = (BREAKAGES | BREAKAGES_OF_COMPILERS)[breakage]
    cases = tuple(
        case for case in cases if shutil.which({"javascript": "node", "rust": "rustc"}.get(case.language, "cc"))
    )
    if not cases:
        unavailable("the toolchain is not installed")
    write_set(tmp_path, cases)
    assert run_broken(tmp_path, setup, *RUN) == 3
    assert set(map(tuple, counting(tmp_path).values())) == {()}
    assert run_broken(tmp_path, "", "resume", "run") == 0
    assert set(map(tuple, counting(tmp_path).values())) == {(True, False)}


def test_the_doctor_finds_a_toolchain_that_tells_its_version_and_does_not_work(tmp_path: Path) -> None:
    tool = "#!/bin/sh\ncase $1 in *version) echo cc 12.2.0;; *) echo internal error >&2; exit 4;; esac\n"
    (tmp_path / "tool").write_text(tool)
    script = f'place=$(readlink -f /usr/bin/cc)\n{PUT}exec "$@"'
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *STEELYARD, "doctor", "--format", "json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    (compiler,) = [found for found in json.loads(ran.stdout)["tools"] if found["name"] == "cc"]
    assert compiler["problem"] == "an answer that is known to be correct fails: internal error"
    assert compiler["remedy"]
    assert not compiler["version"]


SURROUNDINGS = {
    "a limit on CPU time": "ulimit -t 60\n",
    "temporary files cannot be run": 'mkdir tmp\nmount -t tmpfs -o noexec tmpfs tmp\nexport TMPDIR="$PWD/tmp"\n',
    "the temporary folder is full": (
        'mkdir tmp\nmount -t tmpfs -o size=64k tmpfs tmp\nhead -c 1m /dev/zero >tmp/full || true\nexport TMPDIR="$PWD/tmp"\n'
    ),
    "a plain locale": "export LC_ALL=C LANG=C PYTHONUTF8=0\n",
    "no PATH": "unset PATH\n",
    "few open files": "ulimit -n 256\n",
}
"""What a user may find around a run; it may keep answers from being judged, and makes none of them wrong."""


@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_surroundings_make_no_right_answer_wrong(surroundings: str, tmp_path: Path) -> None:
    write_set(tmp_path, (PYTHON, *([C] if shutil.which("cc") else [])))
    code = run_broken(tmp_path, SURROUNDINGS[surroundings], *RUN)
    if not (tmp_path / "run").exists():
        assert code in (2, 3), "it is refused before anything is asked"
        return
    judged = counting(tmp_path)
    assert all(outcomes in ([], [True, False]) for outcomes in judged.values()), judged
    assert code == (0 if all(judged.values()) else 3)
    assert run_broken(tmp_path, "", "resume", "run") == 0
    assert set(map(tuple, counting(tmp_path).values())) == {(True, False)}


def test_a_package_that_only_tests_import_is_not_the_answers_fault(tmp_path: Path) -> None:
    tests = Expectations(test_file="import not_installed_here as np\nassert twice(2) == 4\n")
    write_set(tmp_path, (replace(PYTHON, expectations=tests),))
    assert run_broken(tmp_path, "", *RUN) in (2, 3)
    if (tmp_path / "run").exists():
        assert all(verdict.found.label == "does not compile" for verdict in facts(tmp_path / "run").verdicts)


def test_answers_wait_for_a_broken_environment_to_be_mended(tmp_path: Path) -> None:
    environment = tmp_path / "env"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    write_set(tmp_path, (replace(PYTHON, verify=Verify(python_env=str(environment))),))
    real = python.readlink()
    python.unlink()
    python.write_text("#!/bin/sh\necho error while loading shared libraries >&2\nexit 127\n")
    python.chmod(0o755)
    assert run_broken(tmp_path, "", *RUN) == 3
    assert set(map(tuple, counting(tmp_path).values())) == {()}
    python.unlink()
    python.symlink_to(real)
    assert run_broken(tmp_path, "", "resume", "run") == 0
    assert set(map(tuple, counting(tmp_path).values())) == {(True, False)}


FEW_PROCESSES_UID = 64_000
"""A user that nothing else runs as, because a limit on processes counts all those of a user."""
THREADS_RIGHT = (
    "import threading\n\ndef twice(number):\n    seen = []\n"
    "    threads = [threading.Thread(target=seen.append, args=(number,)) for _ in range(2)]\n"
    "    for thread in threads:\n        thread.start()\n    for thread in threads:\n        thread.join()\n    return sum(seen)"
)
CHILD_RIGHT = "import subprocess\nprint(2 * int(subprocess.check_output(['cat'])))"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user can write to."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, FEW_PROCESSES_UID, FEW_PROCESSES_UID)
        yield Path(folder)


def test_a_process_limit_makes_no_answer_wrong_that_starts_threads_or_programs(open_folder: Path) -> None:
    python = interpreter("nobody")
    if not python or shutil.which("prlimit") is None:
        unavailable("no Python that an ordinary user can run, or no prlimit")
    pairs = Verify(style="io", pairs=(Pair(input="2\n", output="4\n"),))
    answers = [
        (replace(PYTHON, id="threads", reference=""), THREADS_RIGHT),
        (replace(PYTHON, id="child", reference="", expectations=Expectations(), verify=pairs), CHILD_RIGHT),
        *([(replace(C, reference=""), C_RIGHT)] if shutil.which("cc") else []),
    ]
    with (open_folder / "cases.jsonl").open("w") as cases, (open_folder / "samples.jsonl").open("w") as samples:
        for case, answer in answers:
            cases.write(json.dumps(msgspec.to_builtins(case)) + "\n")
            for blanks in range(2):  # two texts, so that both are verified
                text = f"```{case.language}\n{answer}\n```\n" + "\n" * blanks
                samples.write(json.dumps({"case_id": case.id, "raw_response": text}) + "\n")

    def ran(most: int, *arguments: str) -> int:
        command = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(open_folder)]
        command += ["prlimit", f"--nproc={most}:{most}", python, "-m", "steelyard.cli", *arguments]
        done = run_as("nobody", command, uid=FEW_PROCESSES_UID, timeout=300)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == 0 or "ulimit -u" in done.stdout + done.stderr, done
        return done.returncode

    for most in (3, 14, 40):  # too few for anything
        assert ran(most, *RUN) == 2
    code = ran(75, *RUN)  # enough to begin with
    assert code in (0, 3)
    judged = counting(open_folder)
    assert all(set(outcomes) <= {True} for outcomes in judged.values()), judged
    assert ran(1000, "resume", "run") == 0
    assert set(map(tuple, counting(open_folder).values())) == {(True, True)}


BESIDE_A_CROWD = """
import asyncio, json
from steelyard.analysis.scoring import is_correct
from steelyard.engine.options import RunOptions
from steelyard.engine.verifiers import VerifierSet
from steelyard.records import Answer, Case, Expectations, Reply, Verdict
from steelyard.sandbox.levels import probe_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox

CASE = Case(id="twice", prompt="", language="python", expectations=Expectations(test_file="assert twice(2) == 4\\n"))
CROWD = '''
import os, time
def twice(number):
    time.sleep(1)
    for _ in range(200):
        try:
            if os.fork() == 0:
                time.sleep(5)
                os._exit(0)
        except OSError:
            break
    time.sleep(5)
'''
HONEST = '''
import threading, time
def twice(number):
    time.sleep(3)
    held = threading.Event()
    threads = [threading.Thread(target=held.wait) for _ in range(30)]
    for thread in threads:
        thread.start()
    held.set()
    for thread in threads:
        thread.join()
    return 2 * number
'''

async def main():
    found = probe_isolation("landlock")
    if not found.holds:
        return None
    verifiers = VerifierSet([CASE], RunOptions(sandbox=ZygoteSandbox(found.enclosure)))

    async def judged(name, code, alone=False):
        answer = Answer(text=f"```python\\n{code}\\n```")
        reply = Reply(key=name, at="", case="twice", model="", number=1, asked="", answer=answer)
        fact = await verifiers.witnessed_verdict(reply, CASE, alone=alone)
        assert isinstance(fact, Verdict), fact
        if fact.found.trouble:
            return "again"
        return "right" if is_correct(CASE, fact.found) else "wrong"

    async def honest():
        return [await judged("honest", HONEST) for _ in range(2)]

    crowd, beside = await asyncio.gather(judged("crowd", CROWD), honest())
    last = [await judged("crowd", CROWD, alone=True), await judged("honest", HONEST, alone=True)]
    await verifiers.close()
    return [crowd, beside, last]

print(json.dumps(asyncio.run(main())))
"""


def test_an_answer_with_many_processes_is_judged_and_fails_none_beside_it() -> None:
    python = interpreter("nobody")
    if not python:
        unavailable("no Python that an ordinary user can run")
    done = run_as("nobody", [python, "-c", BESIDE_A_CROWD], uid=FEW_PROCESSES_UID + 1, timeout=200)
    assert done.returncode == 0, done.stderr
    if (told := json.loads(done.stdout)) is None:
        unavailable("no landlock here")
    crowd, beside, last = told
    assert crowd in ("again", "wrong")
    assert set(beside) <= {"right", "again"}, beside
    assert last == ["wrong", "right"]


def test_a_run_on_a_tiny_file_system_ends_with_3_and_goes_on_where_there_is_room(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "def ask(prompt, attempt):\n"
        "    with open('asks', 'a') as log:\n        log.write(attempt.key + '\\n')\n"
        "    return 'blue ' * 100\n"
    )
    case = '[[cases]]\nid = "c"\nname = "c"\nprompt = "p"\ntarget = "blue"\n'
    (tmp_path / "evals.toml").write_text(f'[eval_set]\nid = "s"\nname = "s"\n{case}')
    run = ("run", "evals.toml", "-m", "python:model.py:ask", "-n", "120", "-j", "2", "--output", "disk/run")
    script = 'cd "$1"\nshift\nmkdir disk\nmount -t tmpfs -o size=64k tmpfs disk\n"$@"\ncode=$?\ncp -a disk/run run\nexit $code\n'
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), *STEELYARD, *run],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ended.returncode, "no space left" in ended.stderr, "Traceback" in ended.stderr) == (3, True, False), ended
    stored = {reply.key for reply in facts(tmp_path / "run").replies}
    assert 0 < len(stored) < 120
    resumed = steelyard(tmp_path, "resume", "run", "--allow-code")
    assert resumed.returncode == 0, resumed.stderr
    found = facts(tmp_path / "run")
    assert len(found.replies) == len({reply.key for reply in found.replies}) == len(found.verdicts) == 120
    asked = (tmp_path / "asks").read_text().splitlines()
    assert all(asked.count(key) == 1 for key in stored), "nothing that was stored is asked for again"
    assert len(asked) <= 120 + 2, "at most what was in flight is asked for twice"
