"""The files for CI systems are well-formed, and their scripts take what they are given for data."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from steelyard.cli.main import COMMANDS, command_parser
from steelyard.reports import REPORT_FORMAT_BY_SUFFIX
from support.toolchains import needs

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "action.yml"
GITHUB, GITLAB = (ROOT / "examples" / "ci" / name for name in ("github.yml", "gitlab.yml"))
CHAOS, TESTS, RELEASE, DOCS = (
    ROOT / ".github" / "workflows" / name for name in ("chaos.yml", "test.yml", "release.yml", "docs.yml")
)
JENKINS = ROOT / "examples" / "ci" / "Jenkinsfile"
PAGE = ROOT / "docs" / "ci.md"
SHARDS = ROOT / "examples" / "ci" / "shards.yml"
HOSTILE = "a b'\"; echo owned >&2; $(touch owned) `touch owned` ${HOME} --config=x"


def loaded(path: Path) -> Any:
    return YAML(typ="safe").load(path)


def steps() -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in loaded(ACTION)["runs"]["steps"] if "run" in step}


def scripts() -> dict[str, str]:
    _, _, jenkins = JENKINS.read_text("utf-8").partition("sh '''#!/bin/bash\n")
    others = {"GitLab": loaded(GITLAB)["evals"]["script"][0], "Jenkins": jenkins.partition("'''")[0]}
    return {name: step["run"] for name, step in steps().items()} | others


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        (["github-actions"], [ACTION]),
        (["github-workflows"], [GITHUB, SHARDS, CHAOS, TESTS, RELEASE, DOCS]),
        (["gitlab-ci", "--data-transform=gitlab-ci"], [GITLAB]),
    ],
    ids=["action", "workflows", "gitlab"],
)
def test_a_file_keeps_to_the_schema_of_its_system(schema: list[str], paths: list[Path], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema[0]}", *schema[1:]]
    checked = subprocess.run([*command, *paths], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    spoiled = [tmp_path / f"{number}.yml" for number, _ in enumerate(paths)]
    for path, copy in zip(paths, spoiled, strict=True):
        copy.write_text(
            path.read_text("utf-8").replace("runs:", "walks:").replace("jobs:", "tasks:").replace("script:", "scripts:")
        )
    refused = subprocess.run([*command, "--output-format", "json", *spoiled], capture_output=True, text=True)
    assert refused.returncode == 1
    assert {error["filename"] for error in json.loads(refused.stdout)["errors"]} == {*map(str, spoiled)}


def test_the_commands_of_the_workflow_for_shards_are_understood() -> None:
    jobs = loaded(SHARDS)["jobs"]
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    commands = [shlex.split(line.partition("||")[0])[1:] for line in lines if line.startswith("steelyard ")]
    understood = [command_parser(COMMANDS).parse_args(words) for words in commands]
    assert [each.command.__name__ for each in understood] == ["run", "merge", "resume", "gate"]
    assert understood[1].output == understood[2].run == understood[3].current
    # what a matrix says reaches a script through the environment alone
    assert "${{" not in "".join(lines)


@pytest.mark.parametrize("name", scripts())
def test_a_script_holds_no_expression_that_is_replaced_before_it_runs(name: str) -> None:
    assert "${{" not in scripts()[name]


@pytest.mark.parametrize("name", scripts())
def test_a_script_stops_at_the_first_error(name: str) -> None:
    assert scripts()[name].startswith("set -euo pipefail\n")


@pytest.mark.parametrize("name", scripts())
def test_a_script_is_sound(name: str) -> None:
    assert subprocess.run(["bash", "-n"], input=scripts()[name], text=True).returncode == 0


@pytest.mark.parametrize(("given", "installed"), [("", "/the action"), ("steelyard==0.1.0", "steelyard==0.1.0")])
def test_the_action_installs_its_own_checkout_unless_told_otherwise(given: str, installed: str, tmp_path: Path) -> None:
    stand_in = tmp_path / "python"
    stand_in.write_text(
        '#!/bin/sh\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; else echo "$@"; fi\n'
    )
    stand_in.chmod(0o755)
    env = {"PYTHON": str(stand_in), "VERSION": given, "CHECKOUT": "/the action", "RUNNER_TEMP": str(tmp_path)}
    assert steps()["Install steelyard"]["env"].keys() <= env.keys()
    ran = subprocess.run(
        ["bash", "-c", steps()["Install steelyard"]["run"]],
        env={**os.environ, **env, "GITHUB_OUTPUT": str(tmp_path / "output")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith(f"-- {installed}\n")


def test_every_action_is_pinned_to_a_major_version() -> None:
    used = [step["uses"] for step in loaded(ACTION)["runs"]["steps"] if "uses" in step]
    used += [step["uses"] for step in loaded(GITHUB)["jobs"]["gate"]["steps"]]
    assert used
    assert all(re.fullmatch(r"[\w.-]+(/[\w.-]+)+@v\d+", name) for name in used)


def test_no_key_is_an_input() -> None:
    assert not [name for name in loaded(ACTION)["inputs"] if "key" in name or "secret" in name]
    assert loaded(GITHUB)["jobs"]["gate"]["steps"][-1]["env"] == {"OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}"}


def test_the_example_gives_inputs_that_are_there_and_every_input_is_documented() -> None:
    inputs = loaded(ACTION)["inputs"]
    given = loaded(GITHUB)["jobs"]["gate"]["steps"][-1]["with"]
    assert set(given) <= set(inputs)
    assert {name for name, about in inputs.items() if about.get("required")} <= set(given)
    page = PAGE.read_text("utf-8")
    assert [name for name in (*inputs, *loaded(ACTION)["outputs"]) if f"`{name}`" not in page] == []


def test_jenkins_runs_commands_that_are_understood_and_stores_what_they_write() -> None:
    lines = scripts()["Jenkins"].replace("\\\n", " ").replace("$SAMPLES", "10").splitlines()
    commands = [shlex.split(line.partition("||")[0])[1:] for line in lines if line.startswith("steelyard ")]
    understood = [command_parser(COMMANDS).parse_args(words) for words in commands]
    assert [each.command.__name__ for each in understood] == ["run", "gate"]
    assert understood[0].output == understood[1].current
    assert all(Path(name).parent.name == "reports" for each in understood for name in each.report)


def test_the_tests_run_on_both_architectures_and_every_python_that_is_promised() -> None:
    matrix = loaded(TESTS)["jobs"]["tests"]["strategy"]["matrix"]
    assert sorted(name.endswith("-arm") for name in matrix["machine"]) == [False, True]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]


def test_reports_that_the_scripts_ask_for_have_a_format() -> None:
    wanted = re.findall(
        r"(?:report in|--report=)\s*(.+?)(?:;| --|$|\s\|\|)", scripts()["Run"] + scripts()["GitLab"], re.MULTILINE
    )
    names = [Path(name).suffix for names in wanted for name in names.split() if "$" not in name]
    assert set(names) == {".md", ".xml", ".sarif", ".html"} <= set(REPORT_FORMAT_BY_SUFFIX)


class Runner:
    """A machine that runs steps of the action as GitHub does, with programs that note how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.results = folder / "output"
        self.summary = folder / "summary"

    def program(self, name: str, body: str) -> Path:
        path = self.programs / name
        path.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" > "{self.folder}/{name}-$1.called"\n{body}\n', "utf-8")
        path.chmod(0o755)
        return path

    def called(self, name: str) -> list[str]:
        return (self.folder / f"{name}.called").read_text("utf-8").splitlines()

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.results.read_text("utf-8").splitlines())

    def run(self, step: str, **given: str) -> subprocess.CompletedProcess[str]:
        machine = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_OUTPUT": str(self.results),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_REPOSITORY": "owner/name",
        }
        known = set(steps()[step]["env"])
        assert set(given) == known, f"the step has {known}"
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps()[step]["run"]]
        return subprocess.run(command, cwd=self.folder, env=machine | given, capture_output=True, text=True)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def ran(
    runner: Runner, code: int, *, eval_set: str = "evals/", models: str = "m", samples: str = "", until: str = "false"
) -> int:
    program = runner.program("steelyard", f"exit {code}")
    given = {"EVAL_SET": eval_set, "MODELS": models, "SAMPLES": samples}
    decision = {"UNTIL_DECIDED": until, "BASELINE": HOSTILE, "MARGIN": "0.05"}
    return runner.run("Run", PROGRAM=str(program), **given, **decision).returncode


def test_inputs_reach_the_command_as_they_are(runner: Runner) -> None:
    assert ran(runner, 0, eval_set=f"evals/\n\n{HOSTILE}\n", models=HOSTILE, samples="10") == 0
    called = runner.called("steelyard-run")
    assert {"--eval-set=evals/", f"--eval-set={HOSTILE}", f"--models={HOSTILE}", "--samples=10"} <= set(called)
    assert len([argument for argument in called if argument.startswith("--eval-set")]) == 2
    assert not (runner.folder / "owned").exists()


def test_samples_that_are_not_given_are_not_passed(runner: Runner) -> None:
    ran(runner, 0)
    assert not [argument for argument in runner.called("steelyard-run") if argument.startswith("--samples")]


def test_a_run_until_decided_is_given_its_baseline_and_its_bound(runner: Runner) -> None:
    assert ran(runner, 1, samples="15", until="true") == 0
    called = runner.called("steelyard-run")
    assert {"--until-decided", f"--baseline={HOSTILE}", "--margin=0.05", "--max-samples=15"} <= set(called)
    ran(runner, 0, samples="15")
    assert not {"--until-decided", f"--baseline={HOSTILE}", "--max-samples=15"} & set(runner.called("steelyard-run"))


@pytest.mark.parametrize(("code", "becomes"), [(0, 0), (1, 0), (3, 0), (2, 2), (130, 130)])
def test_a_run_that_failed_stops_the_job_and_one_with_gaps_goes_on_to_the_gate(
    runner: Runner, code: int, becomes: int
) -> None:
    assert ran(runner, code) == becomes
    assert runner.outputs().get("exit-code") == (None if becomes else str(code))
    assert Path(runner.outputs()["folder"]).is_dir()


def gated(runner: Runner, code: int, baseline: str = "main", run_code: str = "0") -> subprocess.CompletedProcess[str]:
    program = runner.program("steelyard", f"echo '### gate'\nexit {code}")
    (runner.folder / "run.md").write_text("### run\n", "utf-8")
    return runner.run(
        "Gate",
        PROGRAM=str(program),
        FOLDER=str(runner.folder),
        RUN_CODE=run_code,
        BASELINE=baseline,
        MARGIN="0.05",
        ON_INCONCLUSIVE="pass",
    )


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_the_gate_hands_its_exit_code_on_and_its_text_to_the_summary(runner: Runner, code: int) -> None:
    assert gated(runner, code, HOSTILE).returncode == 0
    assert runner.outputs() == {"exit-code": str(code)}
    assert f"--baseline={HOSTILE}" in runner.called("steelyard-gate")
    assert runner.summary.read_text("utf-8") == "### gate\n\n### run\n"


def test_without_a_baseline_the_run_decides(runner: Runner) -> None:
    assert gated(runner, 1, "", "3").returncode == 0
    assert runner.outputs() == {"exit-code": "3"}
    assert not (runner.folder / "steelyard-gate.called").exists()


@pytest.mark.parametrize(
    ("code", "fail", "becomes"),
    [("0", "true", 0), ("1", "true", 1), ("1", "false", 0), ("3", "true", 3), ("3", "false", 0), ("2", "false", 2)],
)
def test_a_failed_gate_fails_the_job_when_it_may_and_a_broken_one_always(
    runner: Runner, code: str, fail: str, becomes: int
) -> None:
    assert runner.run("Decide", CODE=code, FAIL=fail).returncode == becomes


def commented(runner: Runner, comments: str) -> subprocess.CompletedProcess[str]:
    """What the step does where these comments stand already, one `ID MARK` per line."""
    (runner.folder / "comments").write_text(comments, "utf-8")
    (runner.folder / "gate.md").write_text("### gate\n", "utf-8")
    runner.program(
        "gh",
        f'case "$*" in *--paginate*) cat "{runner.folder}/comments" ;; *) printf "%s\\n" "$@" > "{runner.folder}/sent.called" ;; esac',
    )
    return runner.run(
        "Comment on the pull request",
        GH_TOKEN="t",
        NUMBER="7",
        FOLDER=str(runner.folder),
        WHICH=f"evals gate {HOSTILE}",
    )


@needs("jq")
def test_the_first_comment_is_new_and_the_next_one_replaces_it(runner: Runner) -> None:
    assert commented(runner, "").returncode == 0
    sent = runner.called("sent")
    assert sent[sent.index("--method") + 1 :][:2] == ["POST", "repos/owner/name/issues/7/comments"]
    mark, _, rest = json.loads((runner.folder / "comment.json").read_text("utf-8"))["body"].partition("\n")
    assert re.fullmatch(r"<!-- steelyard [0-9a-f]{16} -->", mark)
    assert rest == "### gate\n"
    assert commented(runner, f"11 hello\n12 {mark}\r\n13 {mark}\n").returncode == 0
    sent = runner.called("sent")
    assert sent[sent.index("--method") + 1 :][:2] == ["PATCH", "repos/owner/name/issues/comments/12"]


@needs("jq")
def test_a_comment_that_may_not_be_made_is_a_warning(runner: Runner) -> None:
    (runner.folder / "gate.md").write_text("### gate\n", "utf-8")
    runner.program("gh", "exit 1")
    tried = runner.run("Comment on the pull request", GH_TOKEN="t", NUMBER="7", FOLDER=str(runner.folder), WHICH="w")
    assert tried.returncode == 0
    assert tried.stdout.startswith("::warning::")
