"""The list of checks of a case, with the code that it refers to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard.errors import InputError
from steelyard.evalsets.companions import CompanionFiles
from steelyard.evalsets.schema import Draft, ProblemCollector

CHECKS_KIND = "checks"
SCRIPTED_CHECKS_KIND = "scripted-checks"
"""The verifier of lists with checks that are code: only these need a sandbox."""
SCRIPT_KEYS = ("python", "python_code", "javascript", "javascript_code")
OTHER_VERIFICATION_KEYS = ("expect", "python", "tests", "pairs", "build", "test", "run")


def with_check_list(draft: Draft, companions: CompanionFiles, problems: ProblemCollector) -> Draft:
    """The draft with its list of checks where its verifier looks for it, and the code of files in the list."""
    verify = draft.table.get("verify", {})
    if not isinstance(verify, dict) or ("checks" not in draft.table and "checks" not in verify):
        return draft

    def wrong(what: str, number: int | None = None) -> None:
        place = "checks" if number is None else f"checks[{number}]"
        keys = ("checks",) if number is None else ("checks", number)
        problems.error(draft.path, draft.line(keys), f"{draft.subject}: {place}: {what}")

    given = draft.table.get("checks", verify.get("checks"))
    table = {key: value for key, value in draft.table.items() if key != "checks"}
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        wrong('expected a list of tables, such as [{contains = "ok"}]')
        given = []
    if others := [key for key in OTHER_VERIFICATION_KEYS if verify.get(key)]:
        wrong(f"the case also has verify.{others[0]}; keep one of them")
    checks = []
    for number, one in enumerate(given):
        try:
            checks.append(_with_code(one, Path(draft.path).absolute().parent, companions))
        except InputError as error:
            wrong(str(error), number)
    is_scripted = any(key in one for one in checks for key in SCRIPT_KEYS)
    verify = {**verify, "kind": SCRIPTED_CHECKS_KIND if is_scripted else CHECKS_KIND, "checks": checks}
    if is_scripted and isinstance(draft.table.get("vars"), dict):
        verify.setdefault("vars", draft.table["vars"])
    return draft._replace(table={**table, "verify": verify})


def _with_code(check: dict[str, Any], folder: Path, companions: CompanionFiles) -> dict[str, Any]:
    """A check with the source of the function that it names, so that a changed function is a changed check."""
    reference = check.get("python", check.get("javascript"))
    if not isinstance(reference, str) or "code" in check:
        return check
    if "python" in check:
        full, _ = companions.function(folder, reference)
        return {**check, "code": companions.text(Path(full.rpartition(":")[0]))}
    file, _, function = reference.rpartition(":") if ":" in reference else (reference, "", "default")
    return {**check, "javascript": f"{file}:{function}", "code": companions.text(folder / file)}
