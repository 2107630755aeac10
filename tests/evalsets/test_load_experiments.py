"""Experiment files: what they say, what tiers take over from each other, and what is wrong with them, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.evalsets.experiments import LoadedExperiment, case_under_tier, is_same_model, load
from steelyard.records import Case, Message, Tier
from steelyard.tiers.rubrics import default_rubric

HEADER = '[experiment]\nid = "e"\ncases = ["cases.toml"]\n'
T0 = '[[tiers]]\nname = "T0"\nmodel = "openai/small"\n'
CASES = '[eval_set]\nid = "s"\nname = "s"\n[[cases]]\nid = "a"\nname = "a"\nprompt = "Say {{hi}}."\ntarget = "hi"\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "cases.toml").write_text(CASES)
    return tmp_path


def loaded(place: Path, text: str) -> LoadedExperiment:
    path = place / "experiment.toml"
    path.write_text(text)
    return load(path)


def problems(place: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loaded(place, text)
    return [f"{problem.line}: {problem.what}" for problem in caught.value.problems]


def test_an_experiment_has_ten_runs_and_equal_weights_where_it_says_nothing_else(place: Path) -> None:
    found = loaded(place, HEADER + T0)
    assert found.header.runs == 10
    assert found.experiment.pass_weight == found.experiment.impl_weight == 0.5
    assert found.experiment.budget_usd is None
    assert found.panel is None
    assert [case.id for case in found.cases] == ["a"]
    assert [Path(file.path).name for file in found.files] == ["experiment.toml", "cases.toml"]
    assert all(Path(file.path).is_absolute() for file in found.files)
    assert found.problems == ()


def test_everything_that_can_be_said_is_taken_over(place: Path) -> None:
    found = loaded(
        place,
        '[experiment]\nid = "e"\nname = "E"\ncases = ["cases.toml"]\nruns = 3\nbudget_usd = 2.5\nseed = 7\n'
        "pass_weight = 1\nimpl_weight = 3\nparameters = { temperature = 0.5 }\n"
        '[judging]\njudges = ["openai/a", "openai/b"]\nrepeats = 2\nparameters = { max_tokens = 900 }\n' + T0,
    )
    assert (found.header.runs, found.header.seed, found.header.parameters) == (3, 7, {"temperature": 0.5})
    assert (found.experiment.pass_weight, found.experiment.impl_weight, found.experiment.budget_usd) == (1, 3, 2.5)
    assert found.panel is not None
    assert (found.panel.judges, found.panel.repeats) == (("openai/a", "openai/b"), 2)
    assert found.panel.parameters == {"max_tokens": 900}
    assert found.panel.digest == default_rubric().digest


def test_a_tier_takes_over_what_it_does_not_say_and_joins_its_tables(place: Path) -> None:
    found = loaded(
        place,
        HEADER
        + '[[tiers]]\nname = "T0"\ntitle = "plain"\nmodel = "openai/small"\nsystem = "Be quick."\n'
        + 'parameters = { temperature = 0.1, top_p = 0.9 }\nfiles = { "A.md" = "a" }\nenvironment = { A = "1", B = "1" }\n'
        + '[[tiers]]\nname = "T1"\nextends = "T0"\nparameters = { temperature = 0.7 }\nfiles = { "B.md" = "b" }\n'
        + '[[tiers]]\nname = "T2"\nextends = "T1"\nsystem = ""\nenvironment = { B = "2" }\n',
    )
    first, second, third = found.experiment.tiers
    assert second == Tier(
        name="T1",
        model="openai/small",
        system="Be quick.",
        parameters={"temperature": 0.7, "top_p": 0.9},
        files={"A.md": "a", "B.md": "b"},
        environment={"A": "1", "B": "1"},
    )
    assert first.title == "plain"
    assert (third.system, third.files, third.environment) == ("", second.files, {"A": "1", "B": "2"})
    assert third.parameters == second.parameters


def test_an_agent_does_not_take_over_whom_others_ask(place: Path) -> None:
    found = loaded(place, HEADER + T0 + '[[tiers]]\nname = "T1"\nextends = "T0"\nagent = "true"\n')
    assert [tier.model for tier in found.experiment.tiers] == ["openai/small", ""]


def test_texts_can_stand_in_files_beside_the_experiment(place: Path) -> None:
    (place / "texts").mkdir()
    for name, text in ("system", "Be kind."), ("prompt", "First think.\n{{prompt}}\n"), ("skill", "# Skill {{x}}\n"):
        (place / "texts" / f"{name}.md").write_text(text)
    found = loaded(
        place,
        HEADER
        + T0
        + 'system = "file://texts/system.md"\nprompt = "file://texts/prompt.md"\nfiles = { "S.md" = "file://texts/skill.md" }\n'
        # what was read once is not looked for again
        + '[[tiers]]\nname = "T1"\nextends = "T0"\nfiles = { "N.md" = "n" }\n',
    )
    first, second = found.experiment.tiers
    assert (first.system, first.prompt) == ("Be kind.", "First think.\n{{prompt}}\n")
    assert first.files == {"S.md": "# Skill {{x}}\n"}
    assert second.files == {"S.md": "# Skill {{x}}\n", "N.md": "n"}


def test_a_template_stands_around_the_prompt_and_fills_in_nothing_of_it() -> None:
    tier = Tier(name="T1", model="m", prompt="[{{tier}} {{case}}] {{prompt}} Think.")
    assert case_under_tier(tier, Case(id="a", prompt="Say {{hi}}.")).prompt == "[T1 a] Say {{hi}}. Think."
    assert case_under_tier(Tier(name="T0", model="m"), case := Case(id="a", prompt="Say hi.")) is case


def test_a_template_stands_around_what_the_user_said_last() -> None:
    said = (
        Message(role="system", content="Rules."),
        Message(role="user", content="One?"),
        Message(role="assistant", content="1"),
        Message(role="user", content="Two?"),
        Message(role="assistant", content="Well,"),
    )
    found = case_under_tier(Tier(name="T1", model="m", prompt="Q: {{prompt}}"), Case(id="a", prompt=said))
    assert [message.content for message in found.messages] == ["Rules.", "One?", "1", "Q: Two?", "Well,"]
    assert [message.role for message in found.messages] == [message.role for message in said]


def test_whether_an_answer_is_right_is_the_same_question_under_every_template() -> None:
    case = Case(id="a", prompt="Say hi.", target="hi")
    assert (
        case_under_tier(Tier(name="T1", model="m", prompt="Please: {{prompt}}"), case).tests_digest == case.tests_digest
    )


def test_a_budget_that_would_not_be_kept_is_an_error(place: Path) -> None:
    for text in (
        HEADER + T0 + "max_cost_usd = 1\n",
        HEADER + "max_cost = 1\n" + T0,
        HEADER + "budget = 1\n" + T0,
        "budget_usd = 1\n" + HEADER + T0,
        HEADER + '[judging]\njudges = ["openai/a"]\nbudget_usd = 1\n' + T0,
    ):
        (found,) = (each for each in problems(place, text) if "unknown key" not in each)
        assert "is not a budget that is enforced; write budget_usd under [experiment]" in found
    loaded(place, HEADER + "budget_usd = 1\n" + T0)
    (tier,) = loaded(place, HEADER + T0 + "budget_usd = 1\ncase_budget_usd = 0.5\n").experiment.tiers
    assert (tier.budget_usd, tier.case_budget_usd) == (1, 0.5)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("budget_usd = 0\n", "budget_usd must be a number of dollars above 0"),
        ("max_turns = 3\n", "max_turns of a tier is for agents; a case with tools has a max_turns of its own"),
        ("attempt_budget_usd = 1\n", "attempt_budget_usd is for agents; limit what a model may write by max_tokens"),
        ('agent = "sh x.sh"\nbudget_usd = 1\n', "an agent's budget also needs attempt_budget_usd"),
        ('tools = ["bash"]\n', "tools cannot be enforced here; set it on the agent's command line"),
    ],
)
def test_a_limit_of_a_tier_that_would_not_be_kept_is_an_error(place: Path, keys: str, said: str) -> None:
    (found,) = (each for each in problems(place, HEADER + T0 + keys) if "unknown key" not in each)
    assert said in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (T0, "0: no [experiment] table; write one with id and cases"),
        ('[experiment]\nid = "e"\n' + T0, "1: [experiment]: cases is missing"),
        (HEADER + "runs = 0\n" + T0, "4: [experiment]: runs must be 1 or more"),
        (HEADER + 'runs = "many"\n' + T0, "4: [experiment]: runs: expected a whole number, got text"),
        (HEADER + "budget_usd = 0\n" + T0, "4: [experiment]: budget_usd must be a number of dollars above 0"),
        (
            HEADER + "pass_weight = 0\nimpl_weight = 0\n" + T0,
            "1: [experiment]: weights are numbers from 0 up, and one must be above 0",
        ),
        (HEADER, "0: no tiers; write each as a [[tiers]] table"),
        (HEADER + '[[tiers]]\nname = "T0"\n', '4: tier "T0": nothing to ask; give it a model or an agent'),
        (HEADER + T0 + T0, '8: tier "T0": a name has 1 to 80 characters, and no other tier has it'),
        (HEADER + '[[tiers]]\nmodel = "openai/m"\n', "4: tier 1: name is missing"),
        (
            HEADER + T0 + '[[tiers]]\nname = "T1"\nextends = "T9"\n',
            '7: tier "T1" extends "T9", which is not defined above it (known: T0)',
        ),
        (
            HEADER + '[[tiers]]\nname = "T0"\nextends = "T0"\nmodel = "openai/m"\n',
            '4: tier "T0" extends "T0", which is not defined above it (it is the first)',
        ),
        (HEADER + T0 + "timeout_secs = 0\n", '7: tier "T0": timeout_secs must be a number of seconds above 0'),
        (
            HEADER + T0 + 'prompt = "{{promt}}"\n',
            "7: tier \"T0\": prompt: cannot be filled in: 'promt' is undefined (vars: case, prompt, tier)",
        ),
        (
            HEADER + T0 + 'prompt = "Say it."\n',
            '7: tier "T0": prompt: the case\'s own prompt is not in it; write {{prompt}} where it belongs',
        ),
        (
            HEADER + "[judging]\njudges = []\n" + T0,
            "5: [judging]: no judges; name at least one, such as openai/gpt-5-mini",
        ),
        (HEADER + '[judging]\njudges = ["openai/j"]\nrepeats = 0\n' + T0, "6: [judging]: repeats must be 1 or more"),
        (
            HEADER + '[judging]\njudges = ["openrouter/openai/Small"]\n' + T0,
            '5: [judging]: "openrouter/openai/Small" would judge its own answers in T0; name another judge, or set allow_self = true',
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(place: Path, text: str, said: str) -> None:
    assert problems(place, text) == [said]


def test_all_that_is_wrong_is_said_at_once(place: Path) -> None:
    (place / "cases.toml").write_text(CASES.replace('id = "a"', 'id = ""'))
    said = problems(
        place,
        HEADER
        + '[judging]\njudges = ["openai/j"]\nrubric = "nowhere.yaml"\n'
        + '[[tiers]]\nname = "T0"\nmodel = 3\n'
        + '[[tiers]]\nname = "T1"\nmodel = "m"\nsystem = "file://nowhere.md"\n',
    )
    assert len(said) == 4
    for line, words in ("9: ", 'tier "T0": model: expected text'), ("13: ", "nowhere.md cannot be read"):
        assert any(each.startswith(line) and words in each for each in said)
    assert any("nowhere.yaml" in problem for problem in _whole(place))
    assert any("an id must have 1 to 200 characters" in each for each in said)


def _whole(place: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(place / "experiment.toml")
    return [str(problem) for problem in caught.value.problems]


def test_a_judge_may_judge_itself_where_that_is_wanted(place: Path) -> None:
    found = loaded(place, HEADER + '[judging]\njudges = ["openai/small"]\nallow_self = true\n' + T0)
    assert found.panel is not None
    assert found.panel.allow_self


@pytest.mark.parametrize(
    ("model", "judge", "same"),
    [
        ("openai/gpt-4o", "openai:gpt-4o", True),
        ("openai/gpt-4o", "openrouter/openai/gpt-4o", True),
        ("openai/gpt-4o", "openai/gpt-4o-mini", False),
        ("ollama/llama3:8b", "ollama/llama3:70b", False),
        ("", "openai/gpt-4o", False),
    ],
)
def test_a_model_is_the_same_whoever_serves_it(model: str, judge: str, same: bool) -> None:
    assert is_same_model(model, judge) == same


def test_what_a_tier_has_no_use_for_is_warned_of(place: Path) -> None:
    agent = '[[tiers]]\nname = "T1"\nagent = "true"\nparameters = { temperature = 1 }\ntimeout_secs = 5\n'
    text = HEADER + T0 + 'timeout_secs = 5\nfiles = { "a" = "b" }\n' + agent
    said = [problem.what for problem in loaded(place, text).problems]
    assert said == [
        'tier "T0": files has no effect: it is for agents, and this tier has none',
        'tier "T0": timeout_secs has no effect: it is for agents, and this tier has none',
        'tier "T1": parameters has no effect: an agent is not sent them',
    ]


def test_a_key_in_an_experiment_is_refused_because_runs_are_stored(place: Path) -> None:
    agent = '[[tiers]]\nname = "T1"\nagent = "true"\nenvironment = { API_KEY = "sk-12345678", MAX_TOKENS = "4096" }\n'
    (said,) = problems(place, HEADER + T0 + agent)
    assert 'tier "T1": environment.API_KEY would be stored with the run; set it in your own environment' in said


def test_an_unknown_key_is_only_warned_of(place: Path) -> None:
    text = HEADER + "rums = 3\n[charts]\n" + T0 + 'modle = "x"\n'
    said = [str(problem) for problem in loaded(place, text).problems]
    assert [(problem.fatal, problem.line) for problem in loaded(place, text).problems] == [
        (False, 5),
        (False, 4),
        (False, 9),
    ]
    for words, problem in zip(('unknown key "charts"', '"runs"', '"model"'), said, strict=True):
        assert words in problem


def test_the_odd_things_of_rubric_and_eval_set_are_told_too(place: Path) -> None:
    (place / "cases.toml").write_text(CASES + 'colour = "red"\n')
    (place / "rubric.toml").write_text('colour = "red"\n[categories.works]\ncheck = "It works."\n')
    found = loaded(place, HEADER + '[judging]\njudges = ["openai/j"]\nrubric = "rubric.toml"\n' + T0)
    assert [Path(problem.where).name for problem in found.problems] == ["cases.toml", "rubric.toml"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[experiment\n", "experiment.toml: not TOML: "),
        (b"a = 1\nb = '\xff'\n", "experiment.toml:2: not UTF-8 text; save the file as UTF-8"),
        (None, "not a file of at most 10 MB; name an experiment in TOML"),
    ],
)
def test_a_file_that_is_none_is_one_sentence(place: Path, content: bytes | None, said: str) -> None:
    path = place / "experiment.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_case_may_be_for_judges_alone(place: Path) -> None:
    (place / "cases.toml").write_text(CASES.replace('target = "hi"', 'verify = { kind = "judge" }'))
    assert loaded(place, HEADER + T0).cases[0].by_judges


def test_a_case_without_a_word_of_the_user_cannot_be_put_into_a_template(place: Path) -> None:
    conversation = 'prompt = [{ role = "system", content = "Be kind." }]'
    (place / "cases.toml").write_text(CASES.replace('prompt = "Say {{hi}}."', conversation))
    (said,) = problems(place, HEADER + T0 + 'prompt = "{{prompt}}"\n')
    assert said == '7: tier "T0": prompt: case "a" has no message of the user\'s to put into it'
