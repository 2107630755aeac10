"""Code that runs with the user's rights because a file names it, and whether the user agreed to it."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard import evalsets
from steelyard.engine.options import RunOptions
from steelyard.engine.preflight.connect import located_path, split_model_names, uncontained_reason
from steelyard.engine.preflight.named_files import MAX_PACKAGE_FILES, file_content, importable_files
from steelyard.errors import InputError
from steelyard.evalsets import experiments
from steelyard.evalsets.companions import SCRIPT_KEYS
from steelyard.plugins import foreign_plugins
from steelyard.plugins.built_in import BUILT_IN_PLUGINS, PluginKind
from steelyard.plugins.user_functions import examined_sources
from steelyard.records import Case, RunInfo, Tier
from steelyard.settings import BUILT_IN_PROVIDERS, DEFAULT_SETTINGS_PATH, Settings
from steelyard.settings import load as load_settings
from steelyard.store.allowed_code import allow_code, allowed_code, code_allowed_here
from steelyard.store.journal import StoredRun
from steelyard.text import counted, printable, short_quote
from steelyard.verifiers.checks.rubric import rubric_judges

MAX_LISTED_CODE = 5
"""The number of parts of code that a message lists."""


class NamedCode(NamedTuple):
    """Something that runs with the user's rights because a file names it."""

    digest: str
    """A digest of its name, its place and its content."""
    text: str
    agent: str = ""
    """The name under which the settings declare it, where it is an agent that may be contained."""
    is_check: bool = False
    """Whether it is code of a check, which runs in the sandbox."""
    is_imported: bool = False
    """Whether it is from the file of another tool, which may be a stranger's."""


def case_code(cases: Sequence[Case], means: RunOptions) -> list[NamedCode]:
    """What these cases name: functions that check or are tools, models that play users, virtual environments, and verifiers of others."""
    found: dict[tuple[str, str], None] = {}
    for case in cases:
        found["function", case.verify.python] = None
        found["function", case.expectations.custom_check] = None
        found["verifier", case.kind] = None
        found |= dict.fromkeys(("function", tool.python) for tool in case.tools)
        if case.user is not None:
            found["model", case.user.model] = None
        if not means.python_env:
            found["environment", case.verify.python_env] = None
    code = [one for case in cases for one in _check_code(case)] + model_code(rubric_judges(cases), means)
    for kind, name in found:
        if name and kind == "function":
            code.append(_function_code(name))
        elif name and kind == "model":
            code += model_code([name], means)
        elif name and kind == "environment":
            code.append(_environment_code(Path(name)))
        elif name:
            code += _plugin_code("verifiers", name)
    return code


def _check_code(case: Case) -> Iterator[NamedCode]:
    """The checks of a case that are code."""
    for check in case.verify.settings.get("checks", ()):
        for key in SCRIPT_KEYS if isinstance(check, dict) else ():
            if key in check:
                yield NamedCode(
                    _digest("check", key, check[key], check.get("code", "")),
                    f"the check {key.removesuffix('_code')} {short_quote(str(check[key]))} in the sandbox",
                    is_check=True,
                    is_imported=bool(case.verify.settings.get("imported")),
                )


def model_code(models: Iterable[str], means: RunOptions, folder: str = "") -> list[NamedCode]:
    """What these models are, where they are programs or functions of this machine or come from a plug-in.

    Relative paths are looked for as `connect` does.
    """
    code: list[NamedCode] = []
    for model in models:
        place = min((at for at in (model.find(":"), model.find("/")) if at > 0), default=-1)
        name, rest = (model[:place], model[place + 1 :]) if place > 0 else (means.settings.default_provider, model)
        given = means.settings.providers.get(name)
        built_in = BUILT_IN_PROVIDERS.get(name)
        provider_type = given.type if given else built_in.type if built_in else name
        if provider_type == "python":
            code.append(_function_code(located_path("python", rest, folder)))
        elif provider_type == "agent" and rest in means.settings.agents:
            code.append(_agent_code(rest, means.settings))
        elif provider_type in ("command", "agent"):
            environment = given.environment if given else {}
            code.append(_program_code(provider_type, rest, Path(), environment))
        else:
            code += _plugin_code("providers", provider_type)
    return code


def tier_code(tiers: Iterable[Tier], folder: Path, means: RunOptions, started_in: str = "") -> list[NamedCode]:
    """What the tiers of an experiment run; the programs of agents are beside it."""
    code: list[NamedCode] = []
    for tier in tiers:
        if tier.agent in means.settings.agents:
            code.append(_agent_code(tier.agent, means.settings, tier.environment))
        elif tier.agent:
            code.append(_program_code("agent", tier.agent, folder, tier.environment))
        else:
            code += model_code([tier.model], means, started_in)
    return code


def settings_code(settings: Settings) -> list[NamedCode]:
    """The settings that give other people's code the user's rights."""
    given = settings.options
    code: list[NamedCode] = []
    if given.get("allow_weak_sandbox"):
        code.append(_settings_code("allow_weak_sandbox, which runs generated code without a sandbox", True))
    if given.get("agent_sandbox") == "off":
        code.append(_settings_code("agent_sandbox, which contains no agent", "off"))
    if given.get("ray_address"):
        code.append(_settings_code(f"the Ray cluster {given['ray_address']}", str(given["ray_address"])))
    if given.get("env_file"):
        file = Path(str(given["env_file"]))
        code.append(_settings_code(f"the environment file {file}", file_content(file)))
    if given.get("python_env"):
        code.append(_environment_code(Path(str(given["python_env"]))))
    return code + _plugin_code("pools", str(given.get("backend", "local")))


def provider_code(settings: Settings) -> list[NamedCode]:
    """The providers of other distributions that a settings file names."""
    return [code for given in settings.providers.values() for code in _plugin_code("providers", given.type)]


def run_code(info: RunInfo, cases: Sequence[Case], means: RunOptions) -> list[NamedCode]:
    """What carrying on with a stored run would run."""
    judges = info.panel.judges if info.panel else ()
    code = case_code(cases, means) + model_code(judges, means) + settings_code(means.settings)
    if info.experiment is None:
        return code + model_code(info.models, means, info.folder)
    return code + tier_code(stored_tiers(info), Path(info.eval_sets[0].path).parent, means, info.folder)


def experiment_code(loaded: experiments.LoadedExperiment, folder: Path, means: RunOptions) -> list[NamedCode]:
    """What an experiment would run."""
    judges = loaded.panel.judges if loaded.panel else ()
    tiers = tier_code((*loaded.experiment.tiers, *loaded.trials), folder, means)
    return case_code(loaded.cases, means) + tiers + model_code(judges, means)


def stored_tiers(info: RunInfo) -> list[Tier]:
    """The tiers of a stored run with their models as the experiment names them, which is how they are reached."""
    tiers = info.experiment.tiers if info.experiment else ()
    return [msgspec.structs.replace(tier, model=model) for tier, model in zip(tiers, info.models, strict=True)]


def path_code(path: Path, means: RunOptions) -> list[NamedCode]:
    """What a file or a folder names: an eval set, an experiment, a run folder or a settings file."""
    if (path / "run.json").is_file():
        stored = StoredRun(path)
        files = [file.path for file in stored.info.eval_sets[1 if stored.info.experiment else 0 :]]
        current = evalsets.load(files).cases if files and all(map(evalsets.is_eval_set_available, files)) else ()
        return run_code(stored.info, [*stored.cases, *current], means)
    if path.name == DEFAULT_SETTINGS_PATH.name:
        settings = load_settings(path, means.variables)[0]
        given = [settings.options.get(key, "") for key in ("models", "judges")] + [settings.default_model]
        texts = [str(text) for value in given for text in (value if isinstance(value, list) else [value])]
        agents = [_agent_code(name, settings) for name in settings.agents]
        return (
            settings_code(settings)
            + provider_code(settings)
            + agents
            + model_code(split_model_names(texts), means._replace(settings=settings))
        )
    if experiments.is_experiment(path):
        return experiment_code(experiments.load(path), path.parent, means)
    return case_code(evalsets.load([path]).cases, means)


def allow_path(path: str | Path, means: RunOptions = RunOptions()) -> list[str]:
    """Agree to all the code that a file or a folder names; returns its descriptions."""
    code = _distinct(path_code(Path(path), means) + settings_code(means.settings))
    if problem := allow_code([one[:2] for one in code]):
        raise InputError(f"the agreement cannot be stored: {problem}")
    return [one.text for one in code]


def is_plugin_allowed(kind: PluginKind, name: str) -> bool:
    """Whether the user agreed to a part of another distribution."""
    return {one.digest for one in _plugin_code(kind, name)} <= allowed_code()


@contextmanager
def own_code(code: Sequence[NamedCode], means: RunOptions, *paths: str | Path) -> Iterator[None]:
    """Let the code run as the user's own, because the user named it; code that is new is announced, and stored at the end.

    After an error inside nothing is announced or stored. Code in another tool's files may come from a stranger, so
    the user must have agreed to it; `paths` are the files.
    """
    require_allowed_code([one for one in code if one.is_imported], means, *paths)
    code = [one for one in code if not one.is_imported]
    known = allowed_code()
    fresh = [one for one in _distinct(code) if one.digest not in known]
    with code_allowed_here(one.digest for one in fresh):
        yield
    if not fresh:
        return
    problem = allow_code([one[:2] for one in fresh])
    if means.say is not None:
        stored = f"; this could not be stored ({problem})" if problem else ""
        means.say(f"note: this runs {_announced(fresh, means)}{stored}")


def require_allowed_code(code: Sequence[NamedCode], means: RunOptions, *paths: str | Path) -> None:
    """Raises an InputError if the user has not agreed to all of the code, which these files name."""
    known = allowed_code()
    fresh = [one for one in _distinct(code) if one.digest not in known]
    if not fresh or means.allow_code:
        return
    where = ", ".join(printable(str(path)) for path in paths)
    if means.ask_user is not None and means.ask_user(f"{where} runs {_announced(fresh, means)}"):
        allow_code([one[:2] for one in fresh])
        return
    command = shlex.join(["steelyard", "allow", *(printable(str(path)) for path in paths)])
    announced = _announced(fresh, means, " that you have not agreed to")
    raise InputError(
        f"{where}: runs {announced}; look at it, and if you trust it type: "
        f"{command} (or give --allow-code, for this time)"
    )


def _distinct(code: Iterable[NamedCode]) -> list[NamedCode]:
    return list({one.digest: one for one in code}.values())


def _announced(code: Sequence[NamedCode], means: RunOptions, remark: str = "") -> str:
    """The code in words, agents that are contained apart: these have no other rights than they declare."""
    contained = [one for one in code if one.agent and not uncontained_reason(one.agent, means)]
    checks = [one for one in code if one.is_check]
    free = [one for one in code if one not in contained and not one.is_check]
    kinds = (
        (free, "code with your rights"),
        (contained, counted(len(contained), "contained agent")),
        (checks, "code of checks"),
    )
    return " and ".join(f"{kind}{remark}: {_listed(listed)}" for listed, kind in kinds if listed)


def _listed(code: Sequence[NamedCode]) -> str:
    more = len(code) - MAX_LISTED_CODE
    return ", ".join(one.text for one in code[:MAX_LISTED_CODE]) + (f" and {more} more" if more > 0 else "")


def _function_code(reference: str) -> NamedCode:
    """A function `file.py:name` or `package.module:name`."""
    name, _, function = reference.rpartition(":")
    if name.endswith(".py"):
        path = Path(name).resolve()
        return NamedCode(
            _digest("function", str(path), function, _source_content(path)),
            f"the function {printable(function)} of {printable(str(path))}",
        )
    spec = PathFinder.find_spec(name.partition(".")[0], [str(Path.cwd()), *sys.path])
    origin = Path(spec.origin) if spec and spec.origin else Path(name)
    folders = (spec.submodule_search_locations if spec else None) or ()
    files = [file for folder in folders for file in importable_files(Path(folder))] if folders else [origin]
    content = [(str(file.resolve()), _source_content(file)) for file in files]
    return NamedCode(_digest("module", name, function, content), f"the function {printable(reference)}")


def _source_content(path: Path) -> str:
    """The digest of a source file, noted so that no other content is run in its place."""
    content = file_content(path)
    if path.suffix == ".py":
        examined_sources[str(path.resolve())] = content
    return content


def _program_code(kind: str, line: str, folder: Path, environment: dict[str, str]) -> NamedCode:
    """A program by its command line: the files that the line names count with their content."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = [line]
    paths = [folder / part for word in words for part in (word, word.partition("=")[2]) if part]
    paths += [path / "__main__.py" for path in paths]
    content = [(str(path.resolve()), file_content(path)) for path in paths]
    digest = _digest("program", kind, line, str(folder.resolve()), content, environment)
    return NamedCode(digest, f"the program {kind}:{printable(line)}")


def _agent_code(name: str, settings: Settings, environment: Mapping[str, str] = {}) -> NamedCode:
    """An agent that a settings file declares: its program, and all that it may reach."""
    declared = settings.agents[name]
    program = _program_code("agent", declared.command, Path(), {**declared.environment, **environment})
    return NamedCode(
        _digest("agent", name, msgspec.to_builtins(declared, enc_hook=str), program.digest),
        f"the agent {printable(name)} ({printable(declared.command)})",
        agent=name,
    )


def _environment_code(folder: Path) -> NamedCode:
    """A virtual environment: its settings, its packages, and the files that Python runs whenever it starts there."""
    packages = folder.glob("lib/python*/site-packages/*")
    content = [
        (package.name, file_content(package) if package.suffix in (".pth", ".py") else "")
        for package in sorted(packages)[:MAX_PACKAGE_FILES]
    ]
    return NamedCode(
        _digest("environment", str(folder.resolve()), file_content(folder / "pyvenv.cfg"), content),
        f"the virtual environment {printable(str(folder))}",
    )


def _plugin_code(kind: PluginKind, name: str) -> list[NamedCode]:
    """A part of another distribution; ours are not a stranger's code."""
    if name in BUILT_IN_PLUGINS[kind] or (point := foreign_plugins(kind).get(name)) is None:
        return []
    version = f"{point.dist.name} {point.dist.version}" if point.dist else ""
    return [
        NamedCode(
            _digest("plug-in", kind, name, point.value, version), f'the plug-in "{printable(name)}" ({point.value})'
        )
    ]


def _digest(*parts: Any) -> str:
    """A collision-resistant hash."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted", enc_hook=str)).hexdigest()


def _settings_code(text: str, value: object) -> NamedCode:
    return NamedCode(_digest("setting", str(Path.cwd()), text, value), f"the setting {printable(text)}")
