"""The commands as functions: they do and print what the commands do and print."""

from __future__ import annotations

import inspect
import math
import pydoc
import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import steelyard
from steelyard import RunOptions, Settings, library
from steelyard.engine.plan import comparable_plan
from steelyard.errors import InputError
from steelyard.records import RunInfo
from steelyard.store.journal import StoredRun
from support.command_line import Ended
from support.command_line import steelyard as command

EXAMPLES = Path(__file__).parents[1] / "examples"
EVALS = "examples/python-basics.toml"
MODEL = "replay:examples/recordings/python-basics.jsonl.gz"
FUNCTIONS = ("run", "resume", "verify", "merge", "gate", "compare", "plan", "passk", "report", "show")
WIDTH = str(shutil.get_terminal_size((100, 40)).columns)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs that the command made, of three and of five attempts at the same cases."""
    place = tmp_path_factory.mktemp("place")
    shutil.copytree(EXAMPLES, place / "examples")
    for name, samples in (("old", "3"), ("new", "5")):
        words = ["--models", MODEL, "--case", "s*", "--samples", samples, "--output", f"runs/{name}"]
        assert command(place, "run", EVALS, *words).returncode == 0
    return place


@pytest.fixture(autouse=True)
def _there(place: Path) -> Iterator[None]:
    with chdir(place):
        yield


def typed(place: Path, *words: str) -> Ended:
    return command(place, *words, COLUMNS=WIDTH)


def plan_of(folder: str | Path) -> RunInfo:
    """What a run was asked, without when and where."""
    return comparable_plan(StoredRun(Path(folder)).info)


def test_a_run_asks_and_finds_what_the_command_asks_and_finds(place: Path) -> None:
    words = ["--models", MODEL, "-n", "2", "--pass-k", "1,2", "--filter", "easy", "--exclude", "s*", "--limit", "2"]
    more = [
        "--temperature",
        "0.8",
        "--max-tokens",
        "99",
        "--param",
        "top_p=0.9",
        "--system",
        "Be brief.",
        "--seed",
        "7",
    ]
    ended = typed(place, "run", EVALS, *words, *more, "--output", "runs/c")
    done = steelyard.run(
        EVALS,
        models=MODEL,
        samples=2,
        pass_k=(1, 2),
        filter=["easy"],
        exclude="s*",
        limit=2,
        temperature=0.8,
        max_tokens=99,
        parameters={"top_p": 0.9},
        system="Be brief.",
        seed=7,
        output="runs/l",
    )
    assert plan_of("runs/l") == plan_of("runs/c")
    assert [case.id for case in StoredRun(done.folder).cases] == [case.id for case in StoredRun(Path("runs/c")).cases]
    assert f"{done}\n" == ended.stdout.replace("runs/c", "runs/l")
    assert done.conclusion().exit_code == ended.returncode


class Same(NamedTuple):
    """A command, and the call that must print the same."""

    words: str
    call: Callable[[], Any]


@pytest.mark.parametrize(
    "same",
    [
        Same("show runs/old", lambda: steelyard.show("runs/old")),
        Same("show runs/new --failed", lambda: steelyard.show("runs/new", failed=True)),
        Same("show runs/old shouted-words", lambda: steelyard.show(Path("runs/old"), "shouted-words")),
        Same("show runs/old shouted-words 1", lambda: steelyard.show("runs/old", "shouted-words", 1)),
        Same("show runs/old --pass-k 1,3", lambda: steelyard.show("runs/old", pass_k=(1, 3))),
        Same("compare runs/old runs/new", lambda: steelyard.compare("runs/old", "runs/new")),
        Same(
            "compare runs/old runs/new --threshold 0.2",
            lambda: steelyard.compare("runs/old", "runs/new", threshold=0.2),
        ),
        Same("gate runs/old runs/new", lambda: steelyard.gate("runs/old", "runs/new")),
        Same("gate runs/old runs/new --margin 10%", lambda: steelyard.gate("runs/old", "runs/new", margin="10%")),
        Same(
            "gate runs/old runs/new --score-range 0:10 --margin 1 --cases off",
            lambda: steelyard.gate("runs/old", "runs/new", score_range=(0, 10), margin=1, cases="off"),
        ),
        Same("plan runs/old --detect 0.2", lambda: steelyard.plan("runs/old", detect=0.2)),
        Same(
            f"plan {EVALS} --baseline runs/old --power 0.9",
            lambda: steelyard.plan([EVALS], baseline="runs/old", power=0.9),
        ),
        Same("passk runs/new --k-values 1,5", lambda: steelyard.passk("runs/new", k=(1, 5))),
        Same(
            "passk --fixes-csv examples/repairs/fixes/large_fixes.csv",
            lambda: steelyard.passk(fixes_csv="examples/repairs/fixes/large_fixes.csv"),
        ),
    ],
    ids=lambda same: same.words,
)
def test_a_result_prints_as_its_command_prints(place: Path, same: Same) -> None:
    result = same.call()
    assert f"{result}\n" == typed(place, *same.words.split()).stdout.rstrip("\n") + "\n"
    assert "<" in result._repr_html_()


def test_a_result_ends_as_its_command_ends(place: Path) -> None:
    regressed = steelyard.compare("runs/old", "runs/new", threshold=0.01)
    ended = typed(place, "compare", "runs/old", "runs/new", "--threshold", "0.01", "--fail-on-regression")
    assert regressed.conclusion(fail_on_regression=True).exit_code == ended.returncode == 1
    thin = steelyard.gate("runs/old", "runs/new").conclusion("fail")
    assert thin.exit_code == typed(place, "gate", "runs/old", "runs/new", "--on-inconclusive", "fail").returncode


def test_a_run_is_named_by_what_a_function_returned() -> None:
    done = steelyard.verify("runs/old")
    assert steelyard.show(done).summary.models == steelyard.show("runs/old").summary.models
    (written,) = steelyard.report(done, "report.json")
    assert written.read_text() == steelyard.report("runs/old", "same.json")[0].read_text()
    assert steelyard.gate(done, "runs/new").decision.verdict


def test_what_is_shown_can_be_read_as_records() -> None:
    shown = steelyard.show("runs/new", failed=True)
    assert len(shown.attempts) == sum(model.attempts - model.correct for model in shown.summary.models)
    assert all(not attempt.correct and attempt.reply for attempt in shown.attempts)


def test_a_stored_run_is_scored_by_other_keywords() -> None:
    assert set(steelyard.verify("runs/old", pass_k=3).summary.models[0].pass_at) == {3}
    assert set(steelyard.show("runs/old", pass_k=[2, 3]).summary.models[0].pass_at) == {2, 3}
    with pytest.raises(InputError, match=r'unknown rule "cod"; .*did you mean "code"'):
        steelyard.show("runs/old", rule="cod")


def test_shards_are_merged_and_a_run_is_extended(place: Path) -> None:
    parts = [
        steelyard.run(EVALS, models=MODEL, samples=1, case="s*", shard=(number, 2), output=f"runs/shard-{number}")
        for number in (1, 2)
    ]
    whole = steelyard.merge(parts, output="runs/merged")
    assert whole.summary.models[0].attempts == len(StoredRun(Path("runs/old")).cases)
    again = steelyard.resume(whole, samples=3)
    assert again.summary.models[0].correct == steelyard.show("runs/old").summary.models[0].correct


def test_a_run_with_a_baseline_asks_until_the_gate_can_decide(place: Path) -> None:
    words = ["--models", MODEL, "--case", "s*", "--baseline", "runs/old", "--max-samples", "4"]
    ended = typed(place, "run", EVALS, *words, "--output", "runs/until-c")
    done = steelyard.run(EVALS, models=MODEL, case="s*", baseline="runs/old", max_samples=4, output="runs/until-l")
    assert done.decision is not None
    assert done.decision_text in ended.stdout
    assert f"{done}\n" == ended.stdout.replace("until-c", "until-l")
    assert done.conclusion().exit_code == ended.returncode
    assert plan_of("runs/until-l") == plan_of("runs/until-c")
    again = steelyard.resume("runs/until-l")
    assert again.decision is not None
    assert again.decision.verdict == done.decision.verdict


def test_what_is_left_out_is_as_in_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        f'models = ["{MODEL}"]\nsamples = 2\npass_k = "1,2"\noutput_dir = "{tmp_path}"\nallow_code = true\n'
    )
    done = steelyard.run(EVALS, case="shouted*", config=tmp_path / "own.toml")
    assert done.folder.parent == tmp_path
    assert (done.info.samples, done.info.k, len(done.info.names)) == (2, (1, 2), 2)
    fewer = steelyard.run(EVALS, case="shouted*", samples=1, pass_k=1, config=tmp_path / "own.toml")
    assert (fewer.info.samples, fewer.info.k) == (1, (1,))
    assert steelyard.show("latest", config=tmp_path / "own.toml").folder == fewer.folder


def test_what_is_odd_is_a_warning_or_said_to_whom_the_options_name(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text("no_such_option = 1\n[providers.openai]\nbase_ur = 'x'\n")
    with pytest.warns(UserWarning, match=r'unknown key "base_ur" .*did you mean "base_url"') as raised:
        steelyard.show("runs/old", config=tmp_path / "odd.toml")
    assert [warning.filename for warning in raised] == [__file__]
    said: list[str] = []
    steelyard.run(
        EVALS,
        models=MODEL,
        case="s*",
        baseline="runs/old",
        max_samples=3,
        output=tmp_path / "run",
        options=RunOptions(say=said.append),
    )
    assert said[0].startswith("asks until the gate can decide; at most qwen")


def test_options_of_ones_own_come_with_their_settings(tmp_path: Path) -> None:
    options = RunOptions(settings=Settings(output_dir=str(tmp_path)), recheck=1)
    done = steelyard.run(EVALS, models=MODEL, samples=1, limit=1, parallelism=2, options=options)
    assert done.folder.parent == tmp_path


@pytest.mark.parametrize("word", ["models", "judges"])
def test_blanks_in_a_list_of_models_are_refused_with_what_was_meant(word: str) -> None:
    asked: dict[str, Any] = {"models": "replay:x", word: "openai/a openai/b"}
    with pytest.raises(InputError, match="did you mean openai/a,openai/b"):
        steelyard.run("examples/python-basics.toml", **asked)


def test_values_take_the_place_of_texts(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,question,answer\nfr,Capital of France?,Paris\n")
    (tmp_path / "replies.jsonl").write_text('{"id": "fr", "response": "Paris"}\n')
    schema = {"type": "object"}
    done = steelyard.run(
        f"{tmp_path}/rows.csv",
        models=[f"replay:{tmp_path}/replies.jsonl"],
        map={"prompt": "question", "target": "answer"},
        response_format=schema,
        output=tmp_path / "run",
    )
    assert done.info.parameters["response_format"]["json_schema"]["schema"] == schema
    (case,) = StoredRun(done.folder).cases
    assert (case.prompt, case.target) == ("Capital of France?", "Paris")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_keyword_is_one_sentence_with_the_nearest_right_one(name: str) -> None:
    function: Callable[..., Any] = getattr(steelyard, name)
    with pytest.raises(TypeError, match=rf'^{name}\(\) has no keyword "confg" \(known: .*; did you mean "config"\?\)$'):
        function(*["x"] * (2 if name in ("gate", "compare") else 1), confg="steelyard.toml")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"limit": 0}, "limit must be a whole number from 1 on, not 0"),
        ({"limit": 2.5}, "limit must be a whole number from 1 on, not 2.5"),
        ({"parallelism": "many"}, "parallelism must be a whole number from 1 on, not 'many'"),
        ({"max_cost": -1}, "max_cost must be a number from 0 on, not -1"),
        ({"require_trust": "isolatd"}, "require_trust must be one of '', 'isolated', 'in-process', not 'isolatd'"),
        ({"samples": 0}, "samples must be a whole number from 1 on, not 0"),
        ({"pass_k": 0}, "k must be 1 or more, not 0"),
        ({"pass_k": "one"}, 'pass_k must be numbers, such as 1,5, not "one"'),
        ({"margin": "much", "baseline": "x"}, "margin must be a number or a percentage, such as 5%, not 'much'"),
        ({"filter": "esay"}, "none of 20 cases is left by --filter"),
        ({"baseline": "no-such-run"}, "no-such-run"),
        ({"models": "nobody/m"}, 'unknown provider "nobody"'),
        ({"models": ()}, "no model"),
    ],
)
def test_a_wrong_value_is_one_sentence(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        steelyard.run(EVALS, **{"models": MODEL, **keywords})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_fits_a_screen_and_names_every_keyword(name: str) -> None:
    text = pydoc.plain(pydoc.render_doc(getattr(steelyard, name)))
    assert sum(max(1, math.ceil(len(line) / 100)) for line in text.splitlines()) <= 40
    (further,) = (
        each
        for each in inspect.signature(getattr(steelyard, name)).parameters.values()
        if each.kind == each.VAR_KEYWORD
    )
    keywords = getattr(library, further.annotation.removeprefix("Unpack[").removesuffix("]")).__annotations__
    earlier = {"k", "means"}
    assert [word for word in keywords if word not in text.replace("\n", " ").split() and word not in earlier] == []
