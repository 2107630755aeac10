"""What proves that the tests of a command came to their end."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from steelyard.languages.table import END_PLACEHOLDER, languages
from steelyard.records import Case
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.settings import CommandSettings

SUBSTITUTING_SHELL_PATTERN = re.compile(r"\b(?:bash|zsh|ksh)\b")
SCRIPT_COMMAND_PATTERN = re.compile(r"(?:node|python3?|sh|dash|bash|perl)(?: -[^-\s]\S*)* (?P<script>[\w./-]+)")
"""A test command that only runs a script."""
SCRIPT_ENDS = {
    ".js": ';process.once("beforeExit", () => console.log("{secret}"));',
    ".py": 'print("{secret}")',
    ".sh": "[ $? -eq 0 ] && echo {secret}",
    ".pl": 'print "\\n{secret}\\n";',
}
"""By the ending of a script's name: the code that we append. Node says it when nothing is left to do."""
SCRIPT_ENDS |= {".mjs": SCRIPT_ENDS[".js"], ".cjs": SCRIPT_ENDS[".js"]}
OWN_END_PATTERN = re.compile(
    r"\bexit\b|\b_exit\b|\bquit\b|\bexec\b|\babort\b|__END__|__DATA__|\bunittest\b|\batexit\b|\btrap\b"
)
"""Words of a script that may end it early, so that our last line may not be reached."""


class EndProof(NamedTuple):
    """A secret that the tests of one attempt print last."""

    secret: str
    built: Mapping[str, str]
    """The files that the answer is built with."""
    tested: Mapping[str, str]
    """The files that the tests run with: the secret is in a script that is run, and no longer in what was compiled."""

    def is_in(self, printed: bytes) -> bool:
        """Whether the tests printed it."""
        return self.secret.encode() in printed

    def without(self, text: str) -> str:
        """What was printed, without what differs for every attempt."""
        return re.sub(rf"\n?{self.secret}\n?", "\n", text).strip("\n")


def end_proof(case: Case) -> EndProof | None:
    """The proof for a case that only looks at an exit code; None if there is none."""
    said = CommandSettings.of(case)
    files = said.files
    secret = secrets.token_hex(16)
    found = SCRIPT_COMMAND_PATTERN.fullmatch(" ".join(said.test.split()))
    script = str(PurePosixPath(found["script"])) if found else ""
    if any(END_PLACEHOLDER in text for text in files.values()):
        built = {name: text.replace(END_PLACEHOLDER, secret) for name, text in files.items()}
        is_compiled = bool(said.build) and END_PLACEHOLDER not in files.get(script, "")
        return EndProof(secret, built, files if is_compiled else built)
    last = SCRIPT_ENDS.get(PurePosixPath(script).suffix, "")
    if not last or script not in files or OWN_END_PATTERN.search(files[script]):
        return None
    ended = {**files, script: f"{files[script]}\n{last.replace('{secret}', secret)}\n"}
    return EndProof(secret, ended, ended)


def end_line(case: Case) -> str:
    """What tells the end of the tests of a case, as a line of code; empty if no file of its tests is in a language that we know."""
    lines = {canonical_language(each.fence): each.end_line for each in languages().values()}
    lines["c"] = lines["cpp"]
    for name in CommandSettings.of(case).files:
        if line := lines.get(canonical_language(PurePosixPath(name).suffix.removeprefix("."))):
            return f"in {name}: {line}"
    return ""


def needs_descriptor_paths(case: Case) -> bool:
    """Whether a command is run by a shell that has `<(...)`, which works with `/dev/fd` only."""
    said = CommandSettings.of(case)
    return any(SUBSTITUTING_SHELL_PATTERN.search(command) for command in (said.run, said.test))
