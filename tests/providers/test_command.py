"""Any program as a model."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest

from steelyard.errors import InputError, Rejected, Unavailable
from steelyard.protocols import OfferedModel, Provider, ProviderSettings
from steelyard.providers.command import connect
from support.asking import answer, attempt, offers


def command(line: str) -> Provider:
    return connect(line, ProviderSettings(type="command"))[line]


def python(source: str) -> Provider:
    return command(f"{shlex.quote(sys.executable)} -c {shlex.quote(source)}")


def alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def gone(process: int) -> bool:
    """Whether a process ends soon; the system takes a moment to bury the dead."""
    for _ in range(500):
        if not alive(process):
            return True
        time.sleep(0.02)
    return False


def test_the_prompt_goes_in_and_the_reply_comes_out(tmp_path: Path) -> None:
    said = answer(command("cat"), attempt("zwölf\n{{x}}", system="be brief"))
    assert said.text == "be brief\n\nzwölf\n{{x}}"
    assert said.finish == "stop"
    assert (said.latency or 0) > 0
    assert (said.input_tokens, said.output_tokens, said.cost) == (None, None, None)


def test_the_program_is_told_which_attempt_it_is() -> None:
    said = answer(
        python("import os; print(os.environ['STEELYARD_CASE'], os.environ['STEELYARD_NUMBER'])"), attempt(number=3)
    )
    assert said.text == "greet 3\n"


def test_a_program_may_tell_tokens_finish_and_cost_as_json() -> None:
    told = {
        "text": "hi",
        "finish": "length",
        "input_tokens": 3,
        "output_tokens": 4,
        "cost_usd": 0.5,
        "more": "is ignored",
    }
    said = answer(command(f"echo {shlex.quote(json.dumps(told))}"))
    assert (said.text, said.finish, said.input_tokens, said.output_tokens) == ("hi", "length", 3, 4)
    assert said.cost is not None
    assert (said.cost.usd, said.cost.source) == (0.5, "the program")


def test_what_a_program_gives_as_its_finish_means_what_the_table_says() -> None:
    assert answer(command("""echo '{"text": "no", "finish": "content_filter"}'""")).finish == "refusal"
    odd = answer(command("""echo '{"text": "no", "finish": "vexed"}'"""))
    assert (odd.finish, odd.note) == ("vexed", 'the finish reason "vexed" is unknown')
    for told in ('{"text": "half", "finish": "error"}', '{"text": "", "finish": "vexed"}'):
        with pytest.raises(Unavailable):
            answer(command(f"echo {shlex.quote(told)}"))


@pytest.mark.parametrize("text", ['{"answer": 42}\n', '{"text": 42}\n', "{not json}\n", "{" * 100_000 + "\n"])
def test_a_reply_that_begins_with_a_brace_is_the_reply(text: str, tmp_path: Path) -> None:
    (tmp_path / "reply").write_text(text)
    assert answer(command(f"cat {tmp_path / 'reply'}")).text == text


def test_bytes_that_are_no_text_do_not_break_the_reply() -> None:
    assert answer(command(r"printf 'a\377b'")).text == "a\ufffdb"


def test_a_program_that_does_not_read_its_prompt_is_answered_all_the_same() -> None:
    assert answer(command("echo hi"), attempt("x" * 1_000_000)).text == "hi\n"


def test_a_program_that_fails_says_why_in_its_last_line() -> None:
    with pytest.raises(Rejected, match=r"exit code 7: out of cheese$") as caught:
        answer(
            python(
                "import sys; print('half an answer'); print('warming up\\nout of cheese', file=sys.stderr); sys.exit(7)"
            )
        )
    assert not caught.value.everyone


def test_a_program_killed_by_a_signal_is_a_failure() -> None:
    with pytest.raises(Rejected, match="exit code -11"):
        answer(python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))


def test_a_program_that_prints_without_end_is_stopped_without_being_kept() -> None:
    with pytest.raises(Rejected, match="printed more than 32 MiB"):
        answer(command("yes"), deadline=60)


def test_a_program_that_complains_without_end_is_answered_when_it_stops() -> None:
    said = answer(python("import sys; sys.stderr.write('x' * (8 << 20)); print('hi')"), deadline=60)
    assert said.text == "hi\n"


def test_a_hanging_program_and_all_it_started_are_killed_at_the_deadline(tmp_path: Path) -> None:
    script = tmp_path / "hang.sh"
    script.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/parent\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    script.chmod(0o755)
    with pytest.raises(TimeoutError):
        answer(command(str(script)), deadline=1.0)
    for name in ("parent", "child"):
        assert gone(int((tmp_path / name).read_text()))


def test_a_child_left_behind_ends_with_its_program(tmp_path: Path) -> None:
    script = tmp_path / "leave.sh"
    script.write_text(f"#!/bin/sh\nsleep 600 >/dev/null 2>&1 &\necho $! > {tmp_path}/child\necho hi\n")
    script.chmod(0o755)
    assert answer(command(str(script))).text == "hi\n"
    assert gone(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("line", ["no-such-program --x", "", "'unclosed", "./not-here.sh"])
def test_a_program_that_is_not_there_is_found_out_before_anything_is_asked(line: str) -> None:
    with pytest.raises(InputError, match=r"^command:"):
        command(line)


def test_a_program_that_cannot_be_started_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"\x7fELF nothing")
    (tmp_path / "broken").chmod(0o755)
    with pytest.raises(OSError, match="Exec format error"):
        answer(command(str(tmp_path / "broken")))


def test_it_offers_itself() -> None:
    assert offers(command("cat")) == [OfferedModel("command:cat")]
    assert os.cpu_count() is None or command("cat").at_once >= 2


def test_a_program_that_closes_its_output_early_may_finish_its_work(tmp_path: Path) -> None:
    done = tmp_path / "done"
    source = (
        f"import os, time; print('hi', flush=True); os.close(1); os.close(2); time.sleep(0.3); open({str(done)!r}, 'w')"
    )
    assert answer(python(source)).text == "hi\n"
    assert done.exists()


def test_a_child_that_left_the_family_keeps_nobody_waiting(tmp_path: Path) -> None:
    # it holds the program's output open, as a server does that was started on the way
    script = tmp_path / "serve.sh"
    script.write_text(f"#!/bin/sh\nsetsid sleep 600 &\necho $! > {tmp_path}/child\nsleep 600\n")
    script.chmod(0o755)
    try:
        with pytest.raises(TimeoutError):
            answer(command(str(script)), deadline=1.0)
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
