"""A change of a workspace is judged by what it changed: what was broken before is nobody's fault, what worked has to work."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec.structs import replace

from steelyard import evalsets
from steelyard.analysis.scoring import SCORING_RULES, is_correct, score
from steelyard.engine.preflight.references import check_references
from steelyard.errors import VerifierError
from steelyard.protocols import Delivery, ProcessResult, Workspace
from steelyard.providers.agent import workspaces
from steelyard.providers.agent.provider import AgentProvider
from steelyard.records import Answer, Attempt, Case, Diagnostic, Expectations, Finding, Verify
from steelyard.records import Test as Ran
from steelyard.records import TestOutcome as RanOutcome
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.code.patches import patch_in
from steelyard.verifiers.command.output import subtract_baseline
from steelyard.verifiers.command.verifier import MISSING_TOOLS_SCRIPT, CommandVerifier
from support.toolchains import needs

pytestmark = needs("git")
EXAMPLES = Path(__file__).parents[3] / "examples" / "agent"
RUNNER = asyncio.Runner()

PROJECT = {
    "sums.sh": "add() { echo $(($1 + $2)); }\nmul() { echo $(($1 + $2)); }\n",
    # one test per file, in TAP, and what each prints goes where nobody reads it
    "run.sh": "set -- tests/*.sh\necho 1..$#\nfor test; do n=$((n + 1)); name=$(basename $test .sh)\n"
    "if sh $test > log 2>&1; then echo ok $n - $name; else echo not ok $n - $name; fi; done\n",
    "tests/add.sh": ". ./sums.sh; [ $(add 2 3) = 5 ]\n",
    "tests/known.sh": "# the machine has no printer yet\nexit 1\n",
    "tests/mul.sh": ". ./sums.sh; [ $(mul 2 3) = 6 ]\n",
}
MEND = "sed -i 's/^mul.*/mul() { echo $(($1 * $2)); }/' sums.sh"


@cache
def sandbox() -> ZygoteSandbox:
    """The strongest sandbox of this machine, kept warm."""
    return ZygoteSandbox(strongest_isolation(allow_weak=True))


@pytest.fixture(scope="session", autouse=True)
def _closed() -> Iterator[None]:
    yield
    RUNNER.run(sandbox().close())
    RUNNER.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    for name, text in PROJECT.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def case(project: Path, *, expected: Any = None, **verify: Any) -> Case:
    digest = workspaces.workspace_digest(workspaces.workspace_files(str(project)))
    given = {"test": "sh run.sh", "results": "tap", "fixes": ("mul",), "workspace_digest": digest, **verify}
    return Case(
        id="a",
        prompt="Mend mul.",
        workspace=str(project),
        timeout_secs=20,
        expectations=expected or Expectations(),
        verify=Verify(kind="command", **given),
    )


def changed(of: Case, script: str) -> str:
    """The patch that an agent makes whose work this script is."""
    before = workspaces.workspace_files(of.workspace)
    with TemporaryDirectory() as folder:
        copy, scratch = Path(folder, "copy"), Path(folder, "scratch")
        scratch.mkdir()
        workspaces.write_files(before, copy)
        subprocess.run(["sh", "-c", script], cwd=copy, check=True)
        return workspaces.workspace_change(before, copy, scratch).patch


def judge(patch: str, of: Case, verifier: CommandVerifier | None = None) -> Finding:
    return RUNNER.run((verifier or CommandVerifier(sandbox())).verify(of, Answer(text=patch)))


def after(script: str, of: Case) -> Finding:
    return judge(changed(of, script), of)


def outcomes(finding: Finding) -> dict[str, str]:
    return {test.name: test.outcome for test in finding.tests}


# ---- whose fault it is


def test_an_agent_that_solves_the_task_is_right_though_another_test_fails_as_before(project: Path) -> None:
    of = case(project)
    finding = after(MEND, of)
    assert outcomes(finding) == {"add": "passed", "known": "ignored", "mul": "passed"}
    assert finding.tests[1].message == "failed before as well"
    assert (finding.label, finding.reason, finding.trust) == ("", "", "in-process")
    assert finding.isolation == sandbox().level
    assert is_correct(of, finding)
    assert score(of, finding, SCORING_RULES["code"]) == 1


def test_an_agent_that_only_does_half_is_wrong(project: Path) -> None:
    of = case(project, files={"tests/mul0.sh": ". ./sums.sh; [ $(mul 0 3) = 0 ]\n"})
    finding = after("sed -i 's/^mul.*/mul() { echo 6; }/' sums.sh", of)
    assert outcomes(finding)["mul"] == "passed"
    assert (finding.label, finding.reason) == ("wrong answer", "mul0")
    assert score(of, finding, SCORING_RULES["code"]) == pytest.approx(0.5 + 0.5 * 2 / 3)


def test_what_worked_before_has_to_work(project: Path) -> None:
    of = case(project)
    finding = after(f"{MEND}; sed -i 's/^add.*/add() {{ echo 0; }}/' sums.sh", of)
    assert outcomes(finding) == {"add": "failed", "known": "ignored", "mul": "passed"}
    assert finding.reason == "add: passed before"
    assert not is_correct(of, finding)


def test_a_test_that_was_to_be_fixed_is_blamed_though_it_failed_before(project: Path) -> None:
    assert not is_correct(case(project), after("echo >> sums.sh", case(project)))
    unasked = case(project, fixes=())
    assert is_correct(unasked, after("echo >> sums.sh", unasked))


def test_a_test_that_was_to_be_fixed_has_to_be_there(project: Path) -> None:
    of = case(project, fixes=("mul", "div"))
    finding = after(MEND, of)
    assert finding.reason == "div: should be fixed, and did not run; what ran: add, known, mul"
    assert not is_correct(of, finding)


def test_the_last_parts_of_a_name_are_enough_where_only_one_test_has_them() -> None:
    def fixed(ran: list[str], name: str) -> str:
        then = Finding(tests=tuple(Ran(name=one, outcome="failed") for one in ran))
        now = Finding(tests=tuple(Ran(name=one, outcome="passed") for one in ran))
        return subtract_baseline(then, now, [name], replaced=False).reason

    for ran, name in (
        ("pkg.test_x.TestA.test_b", "test_b"),
        ("pkg.test_x.TestA.test_b", "TestA.test_b"),
        ("test_b", "pkg.test_x.TestA.test_b"),
        ("tests/test_x.py::TestA::test_b[1.5/2]", "TestA::test_b[1.5/2]"),
        ("TestA > test_b", "tests/test_x.py::TestA::test_b"),
    ):
        assert fixed([ran, "pkg.test_x.TestA.test_other"], name) == ""
    assert (
        fixed(["a.test_b", "b.test_c"], "st_b")
        == "st_b: should be fixed, and did not run; what ran: a.test_b, b.test_c"
    )
    assert fixed(["a.test_b", "b.test_b"], "test_b") == (
        "test_b: should be fixed, and may be any of a.test_b, b.test_b; name it in full"
    )
    many = [f"t{number}" for number in range(12)]
    assert fixed(many, "x").endswith("t8, t9 and 2 more")


def test_a_test_that_is_taken_away_was_broken(project: Path) -> None:
    of = case(project)
    finding = after(f"{MEND}; rm tests/add.sh", of)
    assert finding.reason == "add: passed before, and did not run now"
    assert not is_correct(of, finding)


def test_the_cases_own_files_are_put_on_top_of_what_the_agent_did(project: Path) -> None:
    kept = {name: text for name, text in PROJECT.items() if name != "sums.sh"}
    of = case(project, files=kept)
    spoiled = "echo exit 0 > tests/mul.sh; printf 'echo 1..2; echo ok 1 - add; echo ok 2 - mul' > run.sh"
    assert is_correct(case(project), after(spoiled, case(project)))
    assert outcomes(after(spoiled, of)) == {
        "add": "passed",
        "known": "ignored",
        "mul": "failed",
    }


@pytest.mark.parametrize(
    "spoil", ["rm -r tests; ln -s /tmp tests", "rm -r tests; echo > tests", "rm -r tests; ln -s . tests"]
)
def test_no_change_of_the_folders_is_in_their_way(spoil: str, project: Path) -> None:
    of = case(project, files={name: text for name, text in PROJECT.items() if name.startswith("tests/")})
    assert outcomes(after(spoil, of)) == {
        "add": "passed",
        "known": "ignored",
        "mul": "failed",
    }


def test_tests_whose_file_the_case_replaces_may_be_gone(project: Path) -> None:
    of = case(project, files={"run.sh": "echo 1..1; echo ok 1 - mul\n"})
    assert is_correct(of, after(MEND, of))


def test_before_and_after_are_compared_by_exit_codes_as_well(project: Path) -> None:
    of = case(project, test="sh tests/mul.sh", results="", fixes=())
    assert is_correct(of, after(MEND, of))
    finding = after("echo >> sums.sh", of)
    assert finding.reason == "no test passes: sh tests/mul.sh: failed before as well: ended with exit code 1"
    assert not is_correct(of, finding)


@pytest.mark.parametrize(
    ("work", "right", "reason"),
    [
        (MEND, True, ""),
        ("sed -i 's/^mul.*/mul() { echo 6; }/' sums.sh", False, "mul0"),
        (f"{MEND}; echo 'add() {{ :; }}' >> sums.sh", False, "add: passed before"),
        (f"{MEND}; sleep 600", True, ""),
        ("rm -rf *", False, "mul0"),
        ("exit 3", False, "the answer is not a patch, or is empty"),
    ],
    ids=["solves", "half solves", "breaks", "hangs", "deletes", "gives up"],
)
def test_from_a_task_to_its_verdict(work: str, right: bool, reason: str, project: Path) -> None:
    of = case(project, files={"run.sh": PROJECT["run.sh"], "tests/mul0.sh": ". ./sums.sh; [ $(mul 0 3) = 0 ]\n"})
    before = workspaces.workspace_files(str(project))
    answer = RUNNER.run(AgentProvider(["sh", "-c", work], time_limit=2).ask(Attempt(case=of, model="m"), Delivery()))
    finding = RUNNER.run(CommandVerifier(sandbox()).verify(of, answer))
    assert (is_correct(of, finding), reason in finding.reason) == (right, True), finding
    assert workspaces.workspace_files(str(project)) == before


# ---- building and linting


def test_what_did_not_build_before_either_is_told_so(project: Path) -> None:
    (project / "sums.sh").write_text("mul() { fi\n")
    (project / "tests" / "known.sh").unlink()
    of = case(project, build="sh -n sums.sh")
    finding = after("echo '# nothing' >> sums.sh", of)
    assert (finding.compiled, finding.label) == (False, "does not compile")
    assert finding.reason.endswith("; it did not build before either")
    mended = after("echo 'mul() { echo $(($1 * $2)); }; add() { echo $(($1 + $2)); }' > sums.sh", of)
    assert is_correct(of, mended)


def test_a_build_that_the_agent_broke_is_its_own_fault(project: Path) -> None:
    of = case(project, build="sh -n sums.sh")
    finding = after("echo 'mul() { fi' > sums.sh", of)
    assert (finding.compiled, finding.label) == (False, "does not compile")
    assert "before" not in finding.reason
    assert not is_correct(of, finding)


def test_only_warnings_beyond_those_before_count(project: Path) -> None:
    lint = "grep -n TODO sums.sh | sed 's/:.*/:1: warning: to do/; s/^/sums.sh:/'"
    (project / "sums.sh").write_text(f"# TODO\n{PROJECT['sums.sh']}")
    of = case(project, lint=lint, expected=Expectations(max_clippy_warnings=0))
    assert after(f"{MEND}; sed -i '1i #' sums.sh", of).warnings == 0
    finding = after(f"{MEND}; echo '# TODO' >> sums.sh", of)
    assert (finding.warnings, len(finding.diagnostics)) == (1, 1)
    assert not is_correct(of, finding)


# ---- patches


def test_an_answer_that_changes_nothing_has_failed(project: Path) -> None:
    of = case(project)
    for text in ("", "\n", "I looked at it and all is well.", "```sh\nls\n```"):
        finding = judge(text, of)
        assert finding.label == "no change"
        assert not is_correct(of, finding)
        assert score(of, finding, SCORING_RULES["code"]) == 0
    left_out = Answer(text="", error="left out of the patch: core (5.4 GB)")
    assert RUNNER.run(CommandVerifier(sandbox()).verify(of, left_out)).reason == "left out of the patch: core (5.4 GB)"


NEW = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ("--- a/gone\n+++ b/gone\n@@ -1 +1 @@\n-x\n+y\n", "gone: No such file or directory"),
        ("--- a/sums.sh\n+++ b/sums.sh\n@@ -1 +1 @@\n-other\n+y\n", "patch failed: sums.sh:1"),
        (NEW.format("../out"), "invalid path '../out'"),
        (NEW.format(".git/hooks/post-checkout"), "invalid path '.git/hooks/post-checkout'"),
        (
            NEW.format("link/x").replace("diff", NEW.format("link").replace("100644", "120000") + "diff", 1),
            "symbolic link",
        ),
        ("diff --git a/x b/x\nrubbish\n", "No valid patches"),
    ],
)
def test_a_patch_that_does_not_apply_has_failed_for_gits_reason(patch: str, reason: str, project: Path) -> None:
    of = case(project)
    finding = judge(patch, of)
    assert finding.label == "does not apply"
    assert reason in finding.reason
    assert finding.code == patch
    assert not is_correct(of, finding)
    assert score(of, finding, SCORING_RULES["code"]) == 0


def test_settings_in_a_workspace_do_not_govern_how_patches_apply(project: Path) -> None:
    (project / ".gitconfig").write_text("[no settings at all")
    (project / ".gitattributes").write_text("* text eol=crlf\n")
    of = case(project)
    assert is_correct(of, after(f"{MEND}; sed -i 's/$/  /' sums.sh", of))


def test_bytes_programs_and_links_arrive_as_they_were(project: Path) -> None:
    (project / "old.bin").write_bytes(bytes(range(256)))
    (project / "here").symlink_to("sums.sh")
    check = "[ -L here ] && [ -L new ] && [ -x go ] && [ ! -x sums.sh ] && cmp old.bin new.bin"
    of = case(project, test=check, results="", fixes=())
    assert is_correct(of, after("cp old.bin new.bin; ln -s sums.sh new; echo > go; chmod +x go", of))


def test_a_patch_may_stand_between_fences(project: Path) -> None:
    of = case(project)
    patch = changed(of, f"{MEND}; printf '```sh\\nls\\n```\\n' > notes.md")
    for text in (
        f"Done:\n\n````diff\n{patch}````\nThat is all.\n",
        f"<think>\nhm\n</think>\n```\n{patch}\n```",
        patch.rstrip("\n"),
    ):
        assert is_correct(of, judge(text, of)), text


def test_many_fences_do_not_take_long() -> None:
    assert patch_in("```a\n" * 200_000) == ""


def test_expected_names_are_looked_for_in_what_is_added(project: Path) -> None:
    expected = Expectations(expected_functions=("half", "add"))
    of = replace(case(project, expected=expected), language="shell")
    assert after(f"{MEND}; echo 'half() {{ echo $(($1 / 2)); }}' >> sums.sh", of).missing == ("add",)


# ---- the workspace


class Watched(ZygoteSandbox):
    """The same sandbox, with a list of what runs in it, and without some tools."""

    def __init__(self, without: str = "") -> None:
        super().__init__(strongest_isolation(allow_weak=True))
        self.without = without
        self.ran: list[str] = []

    @asynccontextmanager
    async def workspace(self, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
        async with super().workspace(*arguments, **named) as place:
            yield Listed(place, self)


class Listed:
    def __init__(self, place: Workspace, watched: Watched) -> None:
        self.read, self.write = place.read, place.write
        self._run, self._watched = place.run, watched

    async def run(self, argv: Sequence[str], **named: Any) -> ProcessResult:
        self._watched.ran.append(argv[-1])
        if MISSING_TOOLS_SCRIPT in argv and self._watched.without:
            return ProcessResult(0, self._watched.without.encode(), b"", "", 0)
        return await self._run(argv, **named)


def test_before_is_looked_at_once_however_many_answers_wait(project: Path) -> None:
    of, watched = case(project), Watched()
    patch = changed(of, MEND)

    async def judged() -> list[Finding]:
        verifier = CommandVerifier(watched)
        found = await asyncio.gather(*(verifier.verify(of, Answer(text=patch)) for _ in range(4)))
        await watched.close()
        return found

    assert all(is_correct(of, finding) for finding in RUNNER.run(judged()))
    assert watched.ran.count("sh run.sh") == 5


def test_a_workspace_that_changed_is_not_the_one_that_was_asked_about(project: Path) -> None:
    of = case(project)
    CommandVerifier(sandbox()).check(of)
    patch = changed(of, MEND)
    (project / "sums.sh").write_text("")
    with pytest.raises(VerifierError, match="changed since the case was loaded"):
        CommandVerifier(sandbox()).check(of)
    with pytest.raises(VerifierError, match="changed since the case was loaded"):
        judge(patch, of)


def test_a_workspace_that_is_gone_is_told_before_anybody_is_asked(project: Path) -> None:
    with pytest.raises(VerifierError, match="is no longer a folder"):
        CommandVerifier(sandbox()).check(replace(case(project), workspace=str(project / "gone")))


@pytest.mark.parametrize("given", [{"answer": "x"}, {"expected": Expectations(should_compile=False), "build": "true"}])
def test_what_makes_no_sense_with_a_workspace_is_refused(given: dict[str, Any], project: Path) -> None:
    with pytest.raises(VerifierError, match="with a workspace"):
        CommandVerifier(sandbox()).check(case(project, **given))


def test_without_git_it_says_how_to_get_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, without = case(project), Watched("git\n")
    patch = changed(of, MEND)
    with pytest.raises(VerifierError, match="git is not installed; get it with: apt install git"):
        judge(patch, of, CommandVerifier(without))
    RUNNER.run(without.close())
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(VerifierError, match="git is not installed; get it with: apt install git"):
        CommandVerifier(sandbox()).check(of)


def test_own_tests_that_cannot_be_told_apart_are_nobodys_answer(project: Path) -> None:
    (project / "run.sh").write_text("echo 1..2; echo ok 1 - a; echo ok 2 - a\n")
    of = case(project)
    with pytest.raises(VerifierError, match="own tests cannot be distinguished"):
        after(MEND, of)


# ---- before and after, by themselves


def found(**outcomes: RanOutcome) -> Finding:
    return Finding(
        code="x", tests=tuple(Ran(name=name, outcome=outcome, message="why") for name, outcome in outcomes.items())
    )


@pytest.mark.parametrize(
    ("before", "now", "outcome", "message"),
    [
        ("", "passed", "passed", "why"),
        ("", "failed", "failed", "why"),
        ("passed", "failed", "failed", "passed before: why"),
        ("failed", "failed", "ignored", "failed before as well: why"),
        ("ignored", "failed", "failed", "why"),
        ("failed", "passed", "passed", "why"),
        ("passed", "ignored", "failed", "passed before, and is skipped now"),
        ("failed", "ignored", "ignored", "why"),
        ("passed", "", "failed", "passed before, and did not run now"),
        ("failed", "", "", ""),
    ],
)
def test_a_test_is_held_against_itself_before(before: RanOutcome, now: RanOutcome, outcome: str, message: str) -> None:
    then, after = (found(other="passed", **({"it": word} if word else {})) for word in (before, now))
    tests = {test.name: test for test in subtract_baseline(then, after, (), replaced=False).tests}
    assert (tests["it"].outcome, tests["it"].message) == (outcome, message) if outcome else "it" not in tests


@pytest.mark.parametrize("now", ["passed", "ignored", "failed", ""])
def test_a_test_that_was_to_be_fixed_has_to_pass(now: RanOutcome) -> None:
    then, after = found(other="passed", it="failed"), found(other="passed", **({"it": now} if now else {}))
    for name in ("it", "suite > it"):
        there = replace(
            after, tests=tuple(replace(test, name=name if test.name == "it" else test.name) for test in after.tests)
        )
        finding = subtract_baseline(then, there, ("it",), replaced=True)
        assert (finding.label == "") == (now == "passed")
        assert any(test.outcome == "failed" for test in finding.tests) == (now != "passed")


def test_a_forged_result_stays_one() -> None:
    forged = replace(found(it="failed"), tampered="two results", label="tampered")
    assert subtract_baseline(found(it="failed"), forged, (), replaced=False) == forged


def test_what_ended_the_tests_is_still_the_label() -> None:
    ended = replace(found(it="failed"), label="cpu limit", reason="stopped at the cpu limit")
    finding = subtract_baseline(found(it="passed"), ended, (), replaced=False)
    assert (finding.label, finding.reason) == ("cpu limit", "stopped at the cpu limit")


def test_a_warning_that_only_moved_is_no_new_one() -> None:
    def warned(*messages: str) -> Finding:
        said = tuple(Diagnostic(level="warning", message=message) for message in messages)
        return Finding(code="x", compiled=True, warnings=len(said), diagnostics=said)

    finding = subtract_baseline(warned("a", "a", "b"), warned("a", "c", "a", "a"), (), replaced=False)
    assert (finding.warnings, [one.message for one in finding.diagnostics]) == (1, ["c", "a"])


# ---- the example


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python that a sandbox would see")
def test_every_reference_passes_and_every_counterexample_fails() -> None:
    loaded = evalsets.load([EXAMPLES / "agent.toml"])
    assert loaded.problems == ()
    assert len(loaded.cases) == 3
    assert check_references(loaded.cases) == (6, [])
    # with a language named, a reference comes between fences
    assert check_references([replace(loaded.cases[0], language="python")]) == (2, [])
