"""Models in a test suite: the fixture `steelyard` runs eval sets, and fails a test where that shows something to be wrong."""

from __future__ import annotations

import shlex
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.summary import Summary
    from steelyard.comparison.exact_tests import CasesRule
    from steelyard.engine.run import Run
    from steelyard.records import Case

# every pytest run imports this module if steelyard is installed, so large imports wait until a test needs them


# where this module was before it was part of the command line: tests import it, and warning filters name it
sys.modules.setdefault("steelyard.pytest_plugin", sys.modules[__name__])


class GateWarning(pytest.PytestWarning):
    """A warning about a test that passed, usually that there is too little evidence to tell."""


class RunUnderTest(NamedTuple):
    """A complete run, and what can be demanded of it."""

    run: Run
    root: Path
    """Where a baseline that is a run is looked for."""

    @property
    def folder(self) -> Path:
        return self.run.folder

    @property
    def summary(self) -> Summary:
        return self.run.summary

    def must_not_regress(
        self,
        baseline: str,
        *,
        alpha: float = 0.05,
        margin: float = 0.05,
        on: str = "passed",
        cases: CasesRule | None = None,
        min_effect: float = 0.0,
        on_inconclusive: str = "pass",
    ) -> None:
        """Fail the test when the run got worse than a baseline; thin evidence warns, or fails as well.

        `cases` says what single cases that got worse mean, "fail", "warn" or "off"; see `steelyard gate`.
        """
        __tracebackhide__ = True
        from steelyard.comparison.gate import CANNOT_TELL, REGRESSED
        from steelyard.engine.gate.gate import gate
        from steelyard.engine.gate.sides import run_folder
        from steelyard.errors import InputError
        from steelyard.reports.comparison import DECISION_FORMATS

        with _fail_on_errors():
            _check_choice(on_inconclusive)
            known = run_folder(baseline, root=self.root)
            if known is not None and known.samefile(self.folder):
                raise InputError(f'the baseline "{baseline}" is this run itself; name an earlier one, or bless one')
            found = gate(
                baseline,
                self.folder,
                alpha=alpha,
                margin=margin,
                on=on,
                cases=cases,
                min_effect=min_effect,
                root=self.root,
            )
        text = f"{DECISION_FORMATS['text'](found.decision, found.warnings)}\nLook closer: steelyard show {shlex.quote(str(self.folder))}"
        undecided = found.decision.verdict == CANNOT_TELL
        missing = any(model.data_missing for model in found.decision.models)
        if found.decision.verdict == REGRESSED or (undecided and (missing or on_inconclusive == "fail")):
            _fail(text)
        are_worse = any(model.case_verdict == "worse" for model in found.decision.models)
        _pass(text, warn=undecided or are_worse or bool(found.warnings))

    def must_pass(self, rate: float, *, k: int = 1, on_inconclusive: str = "pass") -> None:
        """Fail the test when pass@k of a model is below a rate with its whole 95% interval; one around it warns, or fails."""
        __tracebackhide__ = True
        from steelyard.analysis.summary import summarise
        from steelyard.errors import InputError
        from steelyard.reports.figures import model_label
        from steelyard.reports.figures import rate as shown
        from steelyard.store.journal import StoredRun
        from steelyard.text import counted

        with _fail_on_errors():
            _check_choice(on_inconclusive)
            if not 0 <= rate <= 1 or k < 1:
                raise InputError(f"a rate must be between 0 and 1, and k at least 1, not {rate:g} and {k}")
            stored = StoredRun(self.folder)
            models = summarise(self.run.info, stored.cases, stored.facts(), k=(k,)).models
            estimates = {model_label(model.model, model.tier): model.pass_at[k] for model in models}
            unknown = [model for model, estimate in estimates.items() if estimate.value is None]
            if unknown:
                raise InputError(f"pass@{k} of {', '.join(unknown)} is not known: no case has {counted(k, 'attempt')}")
        below = any(estimate.high is not None and estimate.high < rate for estimate in estimates.values())
        undecided = any(estimate.low is None or estimate.low < rate for estimate in estimates.values())
        verdict = f"UNDER {rate:.1%}" if below else "CANNOT TELL" if undecided else f"AT LEAST {rate:.1%}"
        text = "\n".join(
            [
                f"{verdict}: pass@{k} must be {rate:.1%}",
                *(
                    f"  {model}: {shown(estimate)} over {counted(estimate.cases, 'case')}"
                    for model, estimate in estimates.items()
                ),
                f"Look closer: steelyard show {shlex.quote(str(self.folder))}",
            ]
        )
        if below or (undecided and on_inconclusive == "fail"):
            _fail(text)
        _pass(text, warn=undecided)


class Steelyard:
    """What a test gets as `steelyard`."""

    def __init__(self, models: str | None, samples: int | None, session: Path) -> None:
        self._models = models
        self._samples = samples
        self._session = session
        """A folder that all processes of this session have in common."""

    def run(
        self,
        cases: Sequence[Case] | Sequence[str | Path] | str | Path,
        *,
        models: Sequence[str] | str | None = None,
        samples: int | None = None,
        **options: Any,
    ) -> RunUnderTest:
        """Run eval sets as `steelyard.run` does; what is left out is as in the settings file and the environment.

        Asked for once more in the same session, it is the same run. A run that lacks data fails the test and says so: its
        attempts are missing, not wrong.
        """
        __tracebackhide__ = True
        with _fail_on_errors():
            asked = _run_arguments(models or self._models or (), self._samples if samples is None else samples, options)
            done = _run_once(self._session, cases, asked)
        if done.stopped or not done.summary.conclusive:
            reasons = [*done.stopped, *done.summary.warnings]
            _fail(
                "\n".join(
                    [
                        "CANNOT TELL: attempts are missing, which is not the model's fault",
                        *(f"  {reason}" for reason in reasons),
                        f"Continue with: steelyard resume {shlex.quote(str(done.folder))}",
                    ]
                )
            )
        return RunUnderTest(done, Path(asked["means"].settings.output_dir))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say in place of the settings file whom tests ask, and how often."""
    group = parser.getgroup("steelyard", "steelyard: how good models are")
    group.addoption(
        "--steelyard-models",
        metavar="P/M,...",
        help="the models of tests that name none (default: those of STEELYARD_MODELS or steelyard.toml)",
    )
    group.addoption(
        "--steelyard-samples",
        type=int,
        metavar="N",
        help="attempts per case in tests that do not say (default: as for the models)",
    )


@pytest.fixture(scope="session")
def steelyard(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Steelyard:
    """Run an eval set and hold it to a baseline: `steelyard.run("evals/").must_not_regress("main")`."""
    own = tmp_path_factory.getbasetemp()
    # each worker of pytest-xdist has a folder below that of the session
    session = own.parent if hasattr(pytestconfig, "workerinput") else own
    return Steelyard(pytestconfig.getoption("steelyard_models"), pytestconfig.getoption("steelyard_samples"), session)


def _run_arguments(models: Sequence[str] | str, samples: int | None, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the run: what was given, and for the rest what a bare `steelyard run` would take."""
    from steelyard.cli import arguments
    from steelyard.cli.main import COMMANDS, apply_configured_defaults, command_parser, parse_options
    from steelyard.engine import run as engine
    from steelyard.engine.asking.request_texts import text_or_file
    from steelyard.engine.preflight.connect import split_model_names
    from steelyard.errors import InputError, did_you_mean

    taken = {"models", "means", *engine.RunPlan._fields}
    for name in given.keys() - taken:
        raise InputError(f'steelyard.run: unknown argument "{name}" ({did_you_mean(name, taken)})')
    commands = command_parser(COMMANDS)
    apply_configured_defaults(commands, ["run"])
    options = parse_options(commands, ["run"])
    settings, means = arguments.settings_and_run_options(options)
    asking = split_model_names(
        [models] if isinstance(models, str) else models or options.models or [settings.default_model]
    )
    if not asking:
        raise InputError(
            "no model to ask; name one in the test, with --steelyard-models or as models in steelyard.toml"
        )
    parameters = arguments.parameters(options, settings.default_temperature) | dict(given.get("parameters") or {})
    defaults = {
        "models": asking,
        "samples": options.samples if samples is None else samples,
        "k": options.pass_k or (1,),
        "system": text_or_file(options.system),
        "seed": options.seed,
        "rule": options.rule or "",
        "base_url": options.base_url or "",
        "means": means,
    }
    return defaults | given | {"parameters": parameters}


def _run_once(session: Path, cases: Any, asked: dict[str, Any]) -> Run:
    """The run, carried out once per session; later callers wait, and get the same one.

    A second run would cost as much again, and would be a second chance for a false alarm.
    """
    import fcntl
    import json
    import os

    import msgspec

    from steelyard.analysis.summary import summarise
    from steelyard.engine import run as engine
    from steelyard.records import digest
    from steelyard.settings import BUILT_IN_PROVIDERS
    from steelyard.store.journal import StoredRun

    means = asked["means"]
    names = [name for known in BUILT_IN_PROVIDERS.values() for name in (known.key, *known.urls)]
    # the rest of the environment changes from test to test
    same = asked | {"means": means._replace(environment={})}
    key = digest(
        *(os.getcwd(), repr(cases), repr(sorted(same.items()))),  # noqa: PTH109  a path is no JSON
        # what no repr shows
        msgspec.to_builtins(means.settings, enc_hook=str),
        [str(means.environment.get(name, "")) for name in names],
    )
    with (session / f"steelyard-{key}.json").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        recorded = file.read()
        if not recorded:
            try:
                done = engine.run(cases, **(asked | {"means": asked["means"]._replace(say=_say)}))
            except engine.RunInterrupted as interrupt:
                pytest.exit(
                    f"what arrived is stored, continue with: steelyard resume {shlex.quote(str(interrupt.folder))}", 2
                )
            json.dump([str(done.folder), done.stopped, done.notes], file)
            return done
    folder, stopped, notes = json.loads(recorded)
    stored = StoredRun(Path(folder))
    summary = summarise(stored.info, stored.cases, stored.facts())
    return engine.Run(stored.folder, stored.info, summary, tuple(stopped), tuple(notes))


def _say(text: str) -> None:
    print(_harmless(text), file=sys.stderr)


def _harmless(text: str) -> str:
    """What a model wrote, as nothing that a terminal or a CI service obeys."""
    from steelyard.cli.streams import is_ci, without_workflow_commands
    from steelyard.text import plain

    return without_workflow_commands(plain(text)) if is_ci() else plain(text)


def _check_choice(on_inconclusive: str) -> None:
    from steelyard.errors import InputError

    if on_inconclusive not in ("pass", "fail"):
        raise InputError(f'on_inconclusive is "pass" or "fail", not "{on_inconclusive}"')


@contextmanager
def _fail_on_errors() -> Iterator[None]:
    """Our messages for users fail the test without a traceback; only our bugs have one."""
    __tracebackhide__ = True
    from steelyard.errors import SteelyardError

    try:
        yield
    except SteelyardError as error:
        _fail(f"steelyard: {error}")


def _fail(text: str) -> NoReturn:
    __tracebackhide__ = True
    pytest.fail(_harmless(text), pytrace=False)


def _pass(text: str, *, warn: bool) -> None:
    """Let the test pass, and leave the reasons where pytest shows them when it is asked to."""
    __tracebackhide__ = True
    if warn:
        warnings.warn(_harmless(text), GateWarning, stacklevel=3)
    else:
        print(_harmless(text))
