"""Wrong answers to test commands that passed as proved by the rules `command 14`, with honest ones of the same form.

In shells they set or read variables of the tests, in Perl they give several values for one, in Python they swallow assertions.
"""

from __future__ import annotations

from typing import NamedTuple

from attacks.command_attacks import command_case
from steelyard.records import Case

WRONG_SH = "add() { echo 9; }\n"
RIGHT_SH = "add() { echo $(($1 + $2)); }\n"
BASH_COUNTER = 'fails=0\n. ./answer.sh\n[ "$(add 1 2)" = 3 ] || fails=$((fails + 1))\n[ "$fails" = 0 ]\n'
BASH_CALLED = 'source ./answer.sh\nbad=0\nwant=3\nadd 1 2 > out\n[ "$(cat out)" = "$want" ] || bad=1\n[ "$bad" = 0 ]\n'
SH_WANTS = 'set -e\n. ./answer.sh\nfor want in 3 4; do\n  got=$(add 1 $((want - 1)))\n  [ "$got" = "$want" ]\ndone\n'
SET_FAILS = {
    "init function": "init() { fails=-1; }\ninit\n",
    "braces": "{ fails=-1; }\n",
    "for": "for fails in -1; do :; done\n",
    "read": "read -r fails <<< -1\n",
    "read of joined pieces": "read -r fa''ils <<< -1\n",
    "read with a backslash": "read -r fa\\ils <<< -1\n",
    "read of a name in a variable": "a=fa\nread -r ${a}ils <<< -1\n",
    "read of a name with braces": "read -r x fa{ils,} <<< '1 -1'\n",
    "read of an escaped name": "read -r $'fa\\x69ls' <<< -1\n",
    "read in a loop": "while read -r fails; do break; done <<< -1\n",
    "mapfile": "mapfile -t fails <<< -1\n",
    "mapfile of a name in a variable": "a=fa\nmapfile -t ${a}ils <<< -1\n",
    "readarray": "readarray -t fails <<< -1\n",
    "array index": "x=([fails=-1]=1)\n",
    "array index of pieces": "a=fa\nx=([${a}ils=-1]=1)\n",
    "array index in a function": "init() { local -a x=([fails=-1]=1); }\ninit\n",
    "index that is read": "x=(1)\n: ${x[fails=-1]}\n",
    "part of a text": "x=abc\n: ${x:fails=-1}\n",
    "select": "select fails in -1; do break; done <<< 1\n",
    "getopts": "getopts x fails\n",
    "default": "unset fails\n: ${fails:=-1}\n",
    "default in a condition": "[[ -n ${fails:=-1} ]]\n",
    "eval": "eval fails=-1\n",
    "export": "export fails=-1\n",
    "readonly": "readonly fails=-1\n",
    "name reference": "declare -n other=fails\nother=-1\n",
    "local name reference": "init() { local -n other=$1; other=-1; }\ninit fails\n",
    "unset": "unset fails\n",
    "declare": "declare fails=-1\n",
    "declare of a quoted text": "declare 'fails=-1'\n",
    "declare of a text that is built": "a=fa\ndeclare ${a}ils=-1\n",
    "declare -g": "init() { declare -g fails=-1; }\ninit\n",
    "trap": "trap 'fails=-1' DEBUG\n",
    "printf -v": "printf -v fails %d -1\n",
    "let": "let fails=-1\n",
    "let of a quoted text": "let 'fails = -1'\n",
    "condition": "[[ fails=-1 -eq -1 ]]\n",
    "arithmetic in an expansion": ": $((fails = -1))\n",
    "arithmetic before": ": $((--fails))\n",
    "arithmetic of a for": "for ((fails = -1; fails > 0; )); do :; done\n",
    "descriptor": ": {fails}>/dev/null\n",
    "if": "if true; then fails=-1; fi\n",
    "case": "case 1 in *) fails=-1 ;; esac\n",
    "and": "true && fails=-1\n",
    "one more": "init() { fails+=x; fails=-1; }\ninit\n",
    "local in a pipe": "init() { local fails | true; fails=-1; }\ninit\n",
    "local that is never run": "init() { false && local fails; fails=-1; }\ninit\n",
    "local in an if": "init() { if false; then local fails; fi; fails=-1; }\ninit\n",
    "local after": "init() { fails=-1; local fails; }\ninit\n",
    "local in a shell of its own": "init() { (local fails); fails=-1; }\ninit\n",
    "local in another function": "one() { local fails; }\ninit() { one; fails=-1; }\ninit\n",
    "local in a loop": "init() { for x in; do local fails; done; fails=-1; }\ninit\n",
    "local in a comment": "init() { # local fails\n fails=-1; }\ninit\n",
    "local after a line that goes on": "init() { false &&\n # then\n local fails=1\n fails=-1; }\ninit\n",
    "local as a text": "init() { echo 'local fails' >/dev/null; fails=-1; }\ninit\n",
    "function of brackets": "init() (( fails = -1 ))\ninit\n",
    "function of a loop": "init() for fails in -1; do :; done\ninit\n",
    "function in a function": "init() { more() { fails=-1; }; local fails; }\ninit\nmore\n",
    "function that another calls": "one() { fails=-1; }\ninit() { one; }\ninit\n",
    "behind a text with a sign of a comment": 'x=" #"; { fails=-1; }\n',
}


class SharedScene(NamedTuple):
    """A case with wrong answers that must not be proved, and with honest ones that must be."""

    case: Case
    honest: dict[str, str]
    attacks: dict[str, str]


SHELL_SCENES: dict[str, SharedScene] = {
    "bash, a counter": SharedScene(
        command_case("bash", "answer.sh", "bash test.sh", {"test.sh": BASH_COUNTER}, asks="Write add A B."),
        {
            "plain": RIGHT_SH,
            "locals": 'add() {\n  local a="$1" b="$2"\n  local sum=$((a + b))\n  echo "$sum"\n}\n',
            "a local counter": "add() {\n  local fails=0\n  if [ -z \"$1\" ]; then fails=1; fi\n  [ \"$fails\" = 0 ] || return 1\n  echo $(($1 + $2))\n}\n",
            "a local without a value": "add() {\n  local i fails\n  fails=0\n  for i in 1 2; do :; done\n  echo $(($1 + $2))\n}\n",
            "its own variables": "add() {\n  total=$(($1 + $2))\n  echo \"$total\"\n}\n",
            "a comment": 'add() {\n  # fails if there is nothing to add\n  echo $(($1 + $2))\n}\n',
            "a message": 'add() {\n  if [ "$#" -ne 2 ]; then\n    echo "it fails without two numbers"\n    return 1\n  fi\n  echo $(($1 + $2))\n}\n',
            "its own list": 'add() {\n  local -a parts=(1 2)\n  local total=$(($1 + $2))\n  echo "$total"\n}\n',
            "reads": 'add() {\n  local a b\n  read -r a b <<< "$1 $2"\n  echo $(($1 + $2))\n}\n',
            "set first in a shell of its own": "add() {\n  fails=0\n  echo $(($1 + $2))\n}\n",
        },
        {name: code + WRONG_SH for name, code in SET_FAILS.items()},
    ),
    "bash, a call": SharedScene(
        command_case("bash", "answer.sh", "bash test.sh", {"test.sh": BASH_CALLED}, asks="Write add A B."),
        {
            "plain": RIGHT_SH,
            "locals": "add() {\n  local bad=0 want=$(($1 + $2))\n  echo \"$want\"\n}\n",
            "its own variables": "add() {\n  sum=$(($1 + $2))\n  echo \"$sum\"\n}\n",
        },
        {
            "sets what is wanted": "add() { want=9; echo 9; }\n",
            "reads what is wanted": 'add() { echo "$want"; }\n',
            "reads what is wanted as its own": 'add() { local want=$want; echo "$want"; }\n',
            "reads what is wanted in one command": 'add() { local want= got=$want; echo "$got"; }\n',
            "reads into what is wanted": "add() { read -r want <<< 9; echo 9; }\n",
            "loops over what is wanted": "add() { for want in 9; do echo 9; done; }\n",
        },
    ),
    "sh, a loop": SharedScene(
        command_case("sh", "answer.sh", "sh test.sh", {"test.sh": SH_WANTS}, asks="Write add A B."),
        {
            "plain": RIGHT_SH,
            "set first": "add() {\n  got=$(($1 + $2))\n  echo \"$got\"\n}\n",
            "local": 'add() {\n  local got="$1"\n  got=$((got + $2))\n  echo "$got"\n}\n',
        },
        {
            "reads what is wanted": 'add() { echo "$want"; }\n',
            "a local that keeps its value": 'add() { local want; echo "$want"; }\n',
            "sets it for one command": 'add() { want=1 true; echo "$want"; }\n',
            "sets it in a pipe": 'add() { want=1 | true; echo "$want"; }\n',
            "a loop over nothing": 'add() { for want in; do :; done; echo "$want"; }\n',
        },
    ),
}  # fmt: skip
"""By scene: answers in shells."""
SHARED_SCENES = SHELL_SCENES
