"""Carrying a run on, extending it, and verifying its replies again."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import steelyard
from steelyard import Case, Means, Settings
from steelyard.errors import InputError, StoreError
from steelyard.records import Failure, Reply, Verdict
from steelyard.store.journal import StoredRun
from support.facts import facts
from support.fault_server import FaultServer, Request, by_prompt, healthy, refuses

MEANS = Means(settings=Settings(max_retries=0, retry_delay_ms=1), environment={})
AGREED = MEANS._replace(allow_code=True)
"""A changed check is asked about again."""
CASES = [Case(id=name, prompt=f"prompt of {name}", target="answer") for name in ("a", "b", "c")]


def asked(server: FaultServer, folder: Path, samples: int = 2) -> steelyard.Run:
    return steelyard.run(
        CASES, models="openai/m", samples=samples, seed=10, base_url=server.url, output=folder, means=MEANS
    )


def seeds(requests: list[Request]) -> list[tuple[str, int]]:
    """Which attempt each request was for: the seed tells its number."""
    return sorted((request.prompt[-1], request.body["seed"] - 9) for request in requests)


def test_resuming_a_finished_run_asks_nobody_and_changes_no_number(server: FaultServer, tmp_path: Path) -> None:
    done = asked(server, tmp_path / "run")
    before = (done.folder / "attempts.jsonl").read_bytes()
    again = steelyard.resume(done.folder, means=MEANS)
    assert len(server.requests) == 6
    assert (done.folder / "attempts.jsonl").read_bytes() == before
    assert again.summary == done.summary
    assert again.info.id == done.info.id


def test_a_case_made_in_code_is_not_verified_again_because_its_file_says_5_0_where_the_code_said_5(
    server: FaultServer, tmp_path: Path
) -> None:
    case = Case(id="a", prompt="prompt of a", target="answer", timeout_secs=5)
    done = steelyard.run([case], models="openai/m", base_url=server.url, output=tmp_path / "run", means=MEANS)
    steelyard.resume(done.folder, means=MEANS)
    assert len(facts(done.folder).verdicts) == 1


def test_failures_are_asked_again_and_nothing_else_is(server: FaultServer, tmp_path: Path) -> None:
    server.script = by_prompt({"prompt of b": [refuses(500)], "prompt of c": refuses(400)})
    done = asked(server, tmp_path / "run")
    assert len(facts(done.folder).failures) == 3
    assert done.summary.models[0].missing == 3

    server.script = healthy
    first = len(server.requests)
    again = steelyard.resume(done.folder, means=MEANS)
    failed = {(failure.case, failure.number) for failure in facts(done.folder).failures}
    assert seeds(server.requests[first:]) == sorted(failed)
    assert again.summary.models[0].missing == 0
    assert again.summary.models[0].attempts == 6


def test_more_samples_extend_a_run_by_what_is_new(server: FaultServer, tmp_path: Path) -> None:
    done = asked(server, tmp_path / "run", samples=2)
    again = steelyard.resume(done.folder, samples=4, means=MEANS)
    assert seeds(server.requests[6:]) == [(case, number) for case in "abc" for number in (3, 4)]
    assert again.info.samples == 4
    assert again.summary.models[0].attempts == 12
    # ... and from then on the run owes that many
    assert StoredRun(done.folder).info.samples == 4


def test_fewer_samples_are_refused_and_leave_the_run_as_it_is(server: FaultServer, tmp_path: Path) -> None:
    done = asked(server, tmp_path / "run", samples=2)
    with pytest.raises(InputError, match="has 2 attempts per case; --samples can only add more"):
        steelyard.resume(done.folder, samples=1, means=MEANS)
    assert StoredRun(done.folder).info.samples == 2
    steelyard.resume(done.folder, means=MEANS)  # the folder is free again


def test_a_journal_cut_off_anywhere_is_made_whole_again(server: FaultServer, tmp_path: Path) -> None:
    done = asked(server, tmp_path / "run")
    journal = done.folder / "attempts.jsonl"
    whole = journal.read_bytes()
    chance = random.Random(7)
    for cut in (0, len(whole) - 1, *chance.sample(range(len(whole)), 4)):
        journal.write_bytes(whole[:cut])
        left = {(fact.case, fact.number) for fact in StoredRun(done.folder).facts() if isinstance(fact, Reply)}
        first = len(server.requests)
        steelyard.resume(done.folder, means=MEANS)
        found = facts(done.folder)
        assert len(found.replies) == len({reply.key for reply in found.replies}) == 6
        assert len(found.verdicts) == len({verdict.key for verdict in found.verdicts}) == 6
        assert left.isdisjoint(seeds(server.requests[first:]))
        assert len(server.requests) - first == 6 - len(left)


def test_a_damaged_line_is_owed_again_and_the_run_is_whole_afterwards(server: FaultServer, tmp_path: Path) -> None:
    done = asked(server, tmp_path / "run")
    journal = done.folder / "attempts.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = next(number for number, line in enumerate(lines) if b'"kind":"reply"' in line)
    for damage in (b"\xff\xfe\n", b"not json\n", lines[damaged][:50] + b"\n"):
        journal.write_bytes(b"".join([*lines[:damaged], damage, *lines[damaged + 1 :]]))
        first = len(server.requests)
        again = steelyard.resume(done.folder, means=MEANS)
        assert len(server.requests) - first == 1
        assert again.summary.models[0].attempts == 6


# --- what was asked, and what is asked now


def evals(folder: Path, prompt: str = "say it", tests: str = "assert f() == 1", check: str = "") -> Path:
    """An eval set of one Python case, or of one with a check of the user's own."""
    path = folder / "evals.toml"
    verify = f'verify = {{python = "{check}"}}' if check else 'language = "python"'
    lines = ["[eval_set]", 'id = "s"', 'name = "s"', "[[cases]]", 'id = "f"', 'name = "f"', f'prompt = "{prompt}"']
    lines += [verify] if check else [verify, "[cases.expectations]", f'test_file = "{tests}"']
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that always answers f() = 1, and notes that it was asked."""
    source = (
        "from pathlib import Path\n"
        "def ask(prompt):\n"
        "    with Path(__file__).with_name('asks').open('a') as log:\n"
        "        log.write('x')\n"
        "    return '```python\\ndef f():\\n    return 1\\n```'\n"
    )
    (tmp_path / "model.py").write_text(source)
    return f"python:{tmp_path / 'model.py'}:ask"


def calls(folder: Path) -> int:
    return len((folder / "asks").read_text())


def test_a_prompt_that_changed_on_disk_is_refused_and_named(tmp_path: Path, model: str) -> None:
    path = evals(tmp_path)
    done = steelyard.run(path, models=model, samples=2, output=tmp_path / "run", means=MEANS)
    evals(tmp_path, prompt="say it louder")
    tries: list[Callable[[], object]] = [
        lambda: steelyard.resume(done.folder, samples=4, means=MEANS),
        lambda: steelyard.verify(done.folder, means=MEANS),
        lambda: steelyard.verify(done.folder, eval_sets=[path], means=MEANS),
    ]
    for again in tries:
        with pytest.raises(
            InputError, match="the prompt changed since this run asked: f; a changed prompt is a new question"
        ):
            again()
    assert calls(tmp_path) == 2
    assert StoredRun(done.folder).info.samples == 2

    evals(tmp_path)
    steelyard.resume(done.folder, samples=4, means=MEANS)
    assert calls(tmp_path) == 4


def test_an_eval_set_that_is_gone_does_not_keep_a_run_from_going_on(tmp_path: Path, model: str) -> None:
    done = steelyard.run(evals(tmp_path), models=model, output=tmp_path / "run", means=MEANS)
    (tmp_path / "evals.toml").unlink()
    assert steelyard.resume(done.folder, samples=2, means=MEANS).summary.models[0].attempts == 2
    assert steelyard.verify(done.folder, means=MEANS).summary.models[0].correct == 2


def test_changed_tests_are_applied_to_old_replies_without_asking_anyone(tmp_path: Path, model: str) -> None:
    path = evals(tmp_path, tests="assert f() == 2")
    done = steelyard.run(path, models=model, samples=3, output=tmp_path / "run", means=MEANS)
    assert (done.summary.models[0].attempts, done.summary.models[0].correct) == (3, 0)

    evals(tmp_path, tests="assert f() == 1")
    # until they are verified again the old verdicts stand
    assert steelyard.resume(done.folder, means=MEANS).summary.models[0].correct == 0
    again = steelyard.verify(done.folder, means=MEANS)
    assert (again.summary.models[0].attempts, again.summary.models[0].correct) == (3, 3)
    assert calls(tmp_path) == 3
    assert len(facts(done.folder).replies) == 3

    # ... and from then on only the new ones count, also for whoever resumes or asks for more
    more = steelyard.resume(done.folder, samples=4, means=MEANS)
    assert (more.summary.models[0].attempts, more.summary.models[0].correct) == (4, 4)
    assert calls(tmp_path) == 4


def test_tests_can_be_taken_from_another_file(tmp_path: Path, model: str) -> None:
    done = steelyard.run(evals(tmp_path), models=model, output=tmp_path / "run", means=MEANS)
    (tmp_path / "other").mkdir()
    stricter = evals(tmp_path / "other", tests="assert f() == 2")
    assert steelyard.verify(done.folder, eval_sets=[stricter], means=MEANS).summary.models[0].correct == 0
    (tmp_path / "foreign.jsonl").write_text('{"id": "g", "prompt": "x", "target": "y"}\n')
    with pytest.raises(InputError, match="contains none of the cases of this run"):
        steelyard.verify(done.folder, eval_sets=[tmp_path / "foreign.jsonl"], means=MEANS)


def test_a_verification_that_failed_is_owed_again_without_asking_anyone(tmp_path: Path, model: str) -> None:
    checks = tmp_path / "checks.py"
    checks.write_text(
        "from pathlib import Path\n\ndef score(reply):\n    return bool(Path(__file__).with_name('oracle').read_text())\n"
    )
    path = evals(tmp_path, check="checks.py:score")
    done = steelyard.run(path, models=model, samples=2, output=tmp_path / "run", means=MEANS)
    found = facts(done.folder)
    assert [failure.stage for failure in found.failures] == ["verify", "verify"]
    assert "FileNotFoundError" in found.failures[0].message
    assert done.summary.models[0].missing == 2

    (tmp_path / "oracle").write_text("yes")
    again = steelyard.resume(done.folder, means=MEANS)
    assert (again.summary.models[0].missing, again.summary.models[0].correct) == (0, 2)
    assert calls(tmp_path) == 2


def test_a_check_that_changed_is_applied_as_it_is_now(tmp_path: Path, model: str) -> None:
    checks = tmp_path / "checks.py"
    checks.write_text("def score(reply):\n    return False\n")
    path = evals(tmp_path, check="checks.py:score")
    done = steelyard.run(path, models=model, samples=2, output=tmp_path / "run", means=MEANS)
    assert done.summary.models[0].correct == 0
    checks.write_text("def score(reply):\n    return 1 + 1 == 2\n")
    with pytest.raises(InputError, match="that you have not agreed to: the function score of"):
        steelyard.verify(done.folder, means=MEANS)
    again = steelyard.verify(done.folder, means=AGREED)
    assert again.summary.models[0].correct == 2
    assert len({verdict.tests for verdict in facts(done.folder).verdicts}) == 2
    assert calls(tmp_path) == 2


def test_no_verdict_of_a_changed_check_passes_as_one_of_the_old_check(tmp_path: Path, model: str) -> None:
    checks = tmp_path / "checks.py"
    checks.write_text("def score(reply):\n    return False\n")
    path = evals(tmp_path, check="checks.py:score")
    done = steelyard.run(path, models=model, samples=2, output=tmp_path / "run", means=MEANS)
    checks.write_text("def score(reply):\n    return 1 + 1 == 2\n")
    with pytest.raises(InputError, match=r"checks\.py changed since it judged this run.*steelyard verify RUN"):
        steelyard.resume(done.folder, samples=4, means=AGREED)
    # whoever is refused changes nothing
    assert StoredRun(done.folder).info.samples == 2
    assert calls(tmp_path) == 2
    steelyard.verify(done.folder, means=AGREED)
    again = steelyard.resume(done.folder, samples=4, means=AGREED)
    assert (again.summary.models[0].attempts, again.summary.models[0].correct) == (4, 4)


# --- what is no run, or not ours to write


def test_a_folder_that_is_no_run_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for again in (steelyard.resume, steelyard.verify):
        with pytest.raises(InputError, match=r"photos: not a run folder \(it has no run\.json\)"):
            again(tmp_path / "photos", means=MEANS)
        with pytest.raises((InputError, StoreError), match="none"):
            again(tmp_path / "none", means=MEANS)
    assert list((tmp_path / "photos").iterdir()) == []
    assert not (tmp_path / "none").exists()


def test_a_folder_with_a_run_in_it_is_not_written_over(server: FaultServer, tmp_path: Path) -> None:
    asked(server, tmp_path / "run")
    with pytest.raises(InputError, match="already contains a run; continue it with: steelyard resume"):
        asked(server, tmp_path / "run")
    assert len(server.requests) == 6


HOLD = """
import sys
from collections.abc import Callable
from pathlib import Path
from steelyard.store.journal import Journal
with Journal(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_while_another_process_writes_a_run_nobody_else_may(server: FaultServer, tmp_path: Path) -> None:
    done = asked(server, tmp_path / "run")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(done.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        for again in (steelyard.resume, steelyard.verify):
            with pytest.raises(StoreError, match="another process is writing this run; wait for it, or stop it first"):
                again(done.folder, means=MEANS)
        other.kill()
    steelyard.resume(done.folder, means=MEANS)
    assert len(server.requests) == 6


# --- what a run refuses before it begins


def test_a_case_that_is_given_twice_is_refused(server: FaultServer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match='"a"'):
        steelyard.run([*CASES, CASES[0]], models="openai/m", base_url=server.url, output=tmp_path / "run", means=MEANS)
    assert server.requests == []


def test_no_cases_at_all_are_refused(server: FaultServer, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        steelyard.run([], models="openai/m", base_url=server.url, output=tmp_path / "run", means=MEANS)


def test_what_cannot_be_verified_is_refused_before_anything_is_paid_for(server: FaultServer, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        steelyard.run(
            [Case(id="x", prompt="?"), Case(id="y", prompt="?", language="python")],
            models="openai/m",
            base_url=server.url,
            output=tmp_path / "run",
            means=MEANS,
        )
    assert [problem.where for problem in caught.value.problems] == ['case "x"', 'case "y"']
    assert server.requests == []
    assert not (tmp_path / "run").exists()


def test_whatever_a_model_of_ones_own_returns_no_other_attempt_suffers(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "def ask(prompt):\n"
        "    if prompt == 'prompt of a':\n"
        "        return 'half a pair: \\udcff'\n"
        "    if prompt == 'prompt of b':\n"
        "        return {'text': 'answer', 'cost': {'usd': float('nan'), 'source': 'x'}}\n"
        "    return 'answer'\n"
    )
    done = steelyard.run(CASES, models=f"python:{tmp_path}/model.py:ask", output=tmp_path / "run", means=MEANS)
    found = list(StoredRun(done.folder).facts())
    assert {fact.case for fact in found if isinstance(fact, Verdict)} >= {"c"}
    # each of the odd ones is a reply that can be read back, or a failure of ours
    assert {fact.case for fact in found if isinstance(fact, Reply | Failure)} == {"a", "b", "c"}


def test_a_run_of_relative_paths_is_carried_on_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home, elsewhere):
        folder.mkdir()
    (home / "said.jsonl").write_text('{"task_id": "a", "completion": "answer", "llm_name": "m"}\n' * 3)
    (home / "models.py").write_text("def right(prompt):\n    return 'answer'\n")
    monkeypatch.chdir(home)
    models = ["replay:said.jsonl", "python:models.py:right"]
    done = steelyard.run(CASES[:1], models=models, samples=1, output="run", means=MEANS)
    monkeypatch.chdir(elsewhere)
    again = steelyard.resume(home / "run", samples=3, means=MEANS)
    assert again.info.names == done.info.names
    assert [(model.attempts, model.missing) for model in again.summary.models] == [(3, 0), (3, 0)]
    assert len(facts(home / "run").replies) == 6
