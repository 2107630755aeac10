"""What files say to plug-ins, checked once the user has agreed to import them: reading a file imports none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.plugins import foreign_plugins, settings_type
from steelyard.protocols import ProviderSettings
from steelyard.records import Case, Verify


def check_case_settings(cases: Iterable[Case]) -> None:
    """Raises an InputError if a case says something to a verifier of another distribution that it does not know."""
    problems = [
        Problem(f'case "{case.id}"', 0, f"verify: {problem}")
        for case in cases
        if case.kind in foreign_plugins("verifiers")
        for problem in _problems(settings_type("verifiers", case.kind), case.verify, Verify())
    ]
    if problems:
        raise InputError(problems)


def check_provider_settings(name: str, reached: ProviderSettings) -> None:
    """The same for what the settings file says to a provider."""
    if reached.type in foreign_plugins("providers"):
        shape = settings_type("providers", reached.type)
        if problems := _problems(shape, reached, ProviderSettings(type=reached.type)):
            raise InputError([Problem(f"providers.{name}", 0, problem) for problem in problems])


def _problems(shape: Any, said: Verify | ProviderSettings, nothing_said: Verify | ProviderSettings) -> list[str]:
    """What is wrong with the settings of a part; keys that all parts share count where they are given."""
    keys = () if shape is None else shape.__struct_fields__
    unknown = [f'unknown key "{key}" ({did_you_mean(key, keys)})' for key in said.settings if key not in keys]
    if unknown or shape is None:
        return unknown
    shared, unset = msgspec.to_builtins(said), msgspec.to_builtins(nothing_said)
    given = {key: value for key, value in shared.items() if key in keys and value != unset.get(key)}
    try:
        msgspec.convert({**given, **said.settings}, shape)
    except msgspec.ValidationError as error:
        return [str(error)]
    return []
