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
    "a line that goes on": "for fa\\\nils in -1; do :; done\n",
    "an index that goes on": "x=([fa\\\nils=-1]=1)\n",
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
    "local in a function of its own": "init() { more() { local fails; }; fails=-1; }\ninit\n",
    "local in a function of its own that is called": "init() { more() { local fails=1; }; more; fails=-1; }\ninit\n",
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

PERL_CHECKS = "require './answer.pl';\nsub check { my ($got, $want) = @_; die \"got $got, want $want\\n\" unless $got == $want; }\ncheck(add(1, 2), 3);\ncheck(add(-1, 1), 0);\n"
PERL_METHODS = "require './answer.pl';\nsub check { my ($got, $want) = @_; die \"wrong\\n\" unless $got == $want; }\nmy $s = Sums->new();\ncheck($s->add(1, 2), 3);\ncheck(Sums->new()->add(-1, 1), 0);\n"
PERL_COUNTER = "require './answer.pl';\nour $fails = 0;\n$fails++ unless add(1, 2) == 3;\ndie if $fails > 0;\n"
PERL_TABLE = "use Answer;\nsub check { my ($got, $want) = @_; die \"wrong\\n\" unless $got == $want; }\nfor my $row (['add', 1, 2, 3], ['add', -1, 1, 0]) {\n  my ($name, $x, $y, $want) = @$row;\n  check(Answer->can($name)->($x, $y), $want);\n}\n"
PERL_LIST_BODIES = {
    "map": "map { 5 } 1 .. 2",
    "map over a variable": "my $n = 5; map { $n, $n } $n",
    "grep": "grep { 1 } 5, 5",
    "slice": "(5, 5, 6)[0, 1]",
    "slice by a variable": "my @i = (0, 1); (5, 5, 6)[@i]",
    "slice of a hash": "my %h = (a => 5, b => 5); @h{'a', 'b'}",
    "slice of a reference": "my $r = [5, 5]; @$r[0, 1]",
    "slice behind an arrow": "my $r = [5, 5]; $r->@[0, 1]",
    "qw": "qw(5 5)",
    "qw in a return": "return qw(5 5)",
    "qw with another bracket": "return qw/5 5/;",
    "or": "0 || map { 5 } 1, 2",
    "defined or": "undef // map { 5 } 1, 2",
    "and": "1 && grep { 1 } 5, 5",
    "low or": "0 or map { 5 } 1, 2",
    "low and": "(1 and (5, 5))",
    "choice": "$_[0] ? map { 5 } 1, 2 : 0",
    "choice in brackets": "return ($_[0] == 1 ? (5, 5) : (5, 5));",
    "choice of calls": "return wantarray ? qw(5 5) : 5;",
    "splice": "my @r = (5, 5); splice(@r, 0, 2)",
    "splice without brackets": "my @r = (5, 5); return splice @r;",
    "reverse": "return reverse(5, 5);",
    "sort": "sort 5, 5",
    "keys": "my %h = (5 => 1); keys %h, 5",
    "values": "my %h = (a => 5, b => 5); return values(%h);",
    "each": "my %h = (5 => 5); each %h",
    "hash": "my %h = (5 => 5); %h",
    "hash behind an arrow": "my $h = { 5 => 5 }; %$h",
    "split": "split /,/, '5,5'",
    "split in a return": "return split(/,/, '5,5');",
    "list made on the spot": "@{[5, 5]}",
    "list made on the spot in brackets": "return (@{[5, 5]});",
    "list behind an arrow": "my $r = [5, 5]; return $r->@*;",
    "list behind an arrow in brackets": "my $r = [5, 5]; (($r->@*))",
    "groups of a pattern": "'55' =~ /(.)(.)/",
    "groups in a return": "my $s = '55'; return $s =~ /(.)(.)/;",
    "all matches": "my $s = '55'; return $s =~ /\\d/g;",
    "matches of the topic": "local $_ = '55'; /(.)(.)/",
    "matches behind a sign": "my $s = '55'; return !$s =~ /()|(.)(.)/;",
    "matches behind a power": "return 5 ** 1 =~ /(.)()/;",
    "list assigned": "my ($x, $y) = (5, 5);",
    "list assigned in brackets": "my ($x, $y); (($x, $y) = (5, 5));",
    "array assigned": "my @r = (5, 5);",
    "arguments": "@_ = (5, 5); @_",
    "range": "5 .. 6",
    "range in brackets": "return (5 .. 6);",
    "repeated": "return (5) x 2;",
    "repeated words": "qw(5) x 2",
    "do": "do { (5, 5) }",
    "do with a list": "return do { my @r = (5, 5); @r };",
    "eval": "eval { (5, 5) }",
    "if": "if ($_[0]) { (5, 5) } else { map { 5 } 1, 2 }",
    "if with an elsif": "if ($_[0] == 7) { return 1; } elsif ($_[0]) { qw(5 5) } else { 7 }",
    "unless": "unless (0) { map { 5 } 1 .. 2 }",
    "bare block": "{ map { 5 } 1 .. 2 }",
    "return of a block": "for my $x (1) { return map { 5 } 1 .. 2; }",
    "return with a condition": "return map { 5 } 1, 2 if 1; return 5;",
    "return behind an or": "my $x = 0; $x or return (5, 5); 5",
    "code that is called": "my $f = sub { (5, 5) }; $f->()",
    "code that is called by a sign": "my $f = sub { (5, 5) }; return &$f;",
    "references to a list": "my @r = map { \\$_ } 5, 5; return map { $$_ } @r;",
    "local topic": "local $_ = 5; return ($_) x 2;",
    "unpack": "return unpack('A1 A1', '55');",
    "localtime": "return (localtime(0))[5, 5];",
    "comma": "return 5, 5;",
    "comma behind a call": "lc(5), 5",
    "comma in the last statement": "my $x = 5; $x, $x",
    "arrow as a comma": "5 => 5",
    "delete of a slice": "my %h = (a => 5, b => 5); delete @h{'a', 'b'}",
    "own sum": "return sum(1);",
    "helper": "two(5)",
    "helper in a return": "return two(5);",
    "helper without brackets": "two 5",
    "helper by a sign": "&two(5)",
    "helper of a package": "main->two()",
    "constants": "return PAIR;",
    "constants in words": "WORDS",
}
PERL_HELPERS = "use constant PAIR => (5, 5);\nuse constant WORDS => qw(5 5);\nsub sum { map { 5 } 1 .. 2 }\nsub two { map { 5 } 1 .. 2 }\n"
PERL_ONE_BODIES = {
    "plain": "my ($x, $y) = @_; return $x + $y",
    "without return": "my ($x, $y) = @_; $x + $y",
    "by index": "$_[0] + $_[1]",
    "a choice": "my ($x, $y) = @_; return $x ? $x + $y : $y;",
    "nested choices": "my ($x, $y) = @_; return $x > 0 ? $x + $y : $x < 0 ? $y + $x : $y;",
    "branches": "my ($x, $y) = @_; if (!defined $y) { return $x; } elsif ($x == 0) { return $y } else { return $x + $y; }",
    "early return": "my ($x, $y) = @_; return $y unless $x; return $x + $y;",
    "a loop": "my $sum = 0; $sum += $_ for @_; return $sum;",
    "a loop with a name": "my $sum = 0; foreach my $n (@_) { next unless $n; $sum += $n; } return $sum;",
    "a count": "my @ones = map { 1 } 1 .. abs($_[0]); my $n = @ones; return $_[0] < 0 ? $_[1] - $n : $_[1] + $n;",
    "scalar": "my @r = @_; return scalar(@r) ? $r[0] + $r[-1] : 0;",
    "a helper": "return total(@_);",
    "a helper that calls itself": "return walk(@_);",
    "a hash": "my ($x, $y) = @_; my %h = (x => $x, y => $y); return $h{x} + $h{y};",
    "references": "my $r = { list => [@_] }; return $r->{list}[0] + $r->{list}->[1];",
    "a hash that is made": "my ($x, $y) = @_; return { sum => $x + $y }->{sum};",
    "an assignment": "my ($x, $y) = @_; my $sum = $x + $y;",
    "or": "my ($x, $y) = @_; my $sum = $x + $y; return $sum || 0;",
    "defined or": "my ($x, $y) = @_; my %cache; return $cache{$x} //= $x + $y;",
    "die": "my ($x, $y) = @_; die \"two numbers\\n\" unless @_ == 2; return $x + $y;",
    "sprintf": "return sprintf('%d', $_[0] + $_[1]);",
    "sprintf without brackets": "return sprintf '%d', $_[0] + $_[1];",
    "join": "return join('', $_[0] + $_[1]) + 0;",
    "int": "return int($_[0] + $_[1]);",
    "sum of a list": "return sum0(@_);",
    "sum without brackets": "return sum0 @_;",
    "sum of a map": "return sum0 map { $_ } @_;",
    "shift": "my $x = shift; my $y = shift; return $x + $y;",
    "a state": "my ($x, $y) = @_; my $f = sub { my ($n) = @_; return $n + $y; }; my $sum = $x + $y; return $sum;",
    "a constant": "return $_[0] + $_[1] + ZERO;",
    "substitution": "my ($x, $y) = @_; (my $text = $x + $y) =~ s/\\s+//; return $text;",
}  # fmt: skip
PERL_SCENES: dict[str, SharedScene] = {
    "Perl, a check with two values": SharedScene(
        command_case("perl", "answer.pl", "perl test.pl", {"test.pl": PERL_CHECKS}, asks="Write add($x, $y)."),
        {
            name: f"use strict;\nuse warnings;\nuse List::Util qw(sum0 max);\nuse constant ZERO => 0;\nsub total {{ my $s = 0; $s += $_ for @_; return $s; }}\nsub walk {{ my ($x, @rest) = @_; return 0 unless defined $x; return $x + walk(@rest); }}\nsub add {{ {body} }}\n1;\n"
            for name, body in PERL_ONE_BODIES.items()
        },
        {name: f"{PERL_HELPERS}sub add {{ {body} }}\n1;\n" for name, body in PERL_LIST_BODIES.items()}
        | {
            "a prototype": "sub add($$) { map { 5 } 1, 2 }\n1;\n",
            "an attribute": "sub add :lvalue { my @r = (5, 5); @r }\n1;\n",
            "second of two": "sub add { 5 }\nsub add { map { 5 } 1, 2 }\n1;\n",
        },
    ),
    "Perl, a counter": SharedScene(
        command_case("perl", "answer.pl", "perl test.pl", {"test.pl": PERL_COUNTER}, asks="Write add($x, $y)."),
        {
            "plain": "sub add { my ($x, $y) = @_; return $x + $y; }\n1;\n",
            "its own counter": "my $fails = 0;\nsub add { my ($x, $y) = @_; $fails = 1; return $x + $y; }\n1;\n",
            "its own variable of the package": "our $calls = 0;\nsub add { my ($x, $y) = @_; $calls++; return $x + $y; }\n1;\n",
        },
        {
            "declares it": "our $fails; sub add { $fails = -1; 9 }\n1;\n",
            "declares it inside": "sub add { our $fails = -9; 9 }\n1;\n",
            "a new one": "sub add { local our $fails; $fails = -9; 9 }\n1;\n",
            "in a list": "our ($x, $fails); sub add { ($x, $fails) = (1, -9); 9 }\n1;\n",
            "cut": "sub add { our $fails; chop($fails); 9 }\n1;\n",
            "in a loop": "sub add { foreach our $fails (-3) { } 9 }\n1;\n",
            "by a reference": "my $r = \\our $fails; sub add { $$r = -9; 9 }\n1;\n",
        },
    ),
    "Perl, functions by their names": SharedScene(
        command_case("perl", "Answer.pm", "perl -I. test.pl", {"test.pl": PERL_TABLE}, asks="Write a package Answer with add($x, $y)."),
        {"plain": "package Answer;\nsub add { my ($x, $y) = @_; return $x + $y; }\n1;\n"},
        {"map": "package Answer;\nsub add { map { 5 } 1, 2 }\n1;\n", "slice": "package Answer;\nsub add { (5, 5, 6)[0, 1] }\n1;\n"},
    ),
    "Perl, a check of methods": SharedScene(
        command_case("perl", "answer.pl", "perl test.pl", {"test.pl": PERL_METHODS}, asks="Write a package Sums with new and add."),
        {
            "plain": "package Sums;\nsub new { my ($class) = @_; return bless {}, $class; }\nsub add { my ($self, $x, $y) = @_; return $x + $y; }\n1;\n",
            "a method of its own": "package Sums;\nsub new { my $class = shift; my $self = { sum => 0 }; bless $self, $class; return $self; }\nsub _put { my ($self, $n) = @_; $self->{sum} += $n; return $self; }\nsub sum { $_[0]{sum} }\nsub add { my ($self, $x, $y) = @_; $self->{sum} = 0; $self->_put($x); $self->_put($y); return $self->sum; }\n1;\n",
        },
        {
            "map": "package Sums;\nsub new { return bless {}, shift; }\nsub add { map { 5 } 1, 2 }\n1;\n",
            "a method of its own": "package Sums;\nsub new { return bless {}, shift; }\nsub two { (5, 5, 6)[0, 1] }\nsub add { $_[0]->two }\n1;\n",
            "a list of itself": "package Sums;\nsub new { return bless { list => [5, 5] }, shift; }\nsub add { my $self = shift; @{ $self->{list} } }\n1;\n",
        },
    ),
}  # fmt: skip
"""By scene: answers in Perl."""

PYTHON_TIMER = (
    "from answer import Timer, add_one\nwith Timer() as t:\n    assert add_one(1) == 2\nassert t.elapsed >= 0\n"
)
PYTHON_FUNCTION = "from answer import add_one, timer\nwith timer() as t:\n    assert add_one(1) == 2\n"
PYTHON_DECORATOR = "from answer import Timer, add_one\n@Timer()\ndef check():\n    assert add_one(1) == 2\ncheck()\n"
PYTHON_ASYNC = "import asyncio\nfrom answer import Session, add_one\nasync def main():\n    async with Session():\n        assert add_one(1) == 2\nasyncio.run(main())\n"
PYTHON_EXITING = "import sys\nfrom answer import Timer, add_one\nwith Timer() as t:\n    if add_one(1) != 2:\n        sys.stdout.flush()\n        {}['wrong']\nassert t.elapsed >= 0\n"
PYTHON_UNASSERTED = "from answer import Timer, add_one\nwith Timer() as t:\n    add_one(1)\nassert t.elapsed == 1\nassert add_one(1) == 2\n"
WRONG_ADD_ONE = "def add_one(x): return 0\n"
TIMER = "class Timer:\n    elapsed = 1\n    def __enter__(self): return self\n"
PYTHON_SCENES: dict[str, SharedScene] = {
    "Python, a timer": SharedScene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": PYTHON_TIMER}, asks="Write add_one(x) and a class Timer, a context manager with the attribute elapsed."),
        {
            "nothing returned": f"def add_one(x): return x + 1\n{TIMER}    def __exit__(self, *a): self.elapsed = 2\n",
            "false": f"def add_one(x): return x + 1\n{TIMER}    def __exit__(self, kind, error, trace):\n        if kind is not None:\n            return False\n        return None\n",
            "an abstract context manager": "from contextlib import AbstractContextManager, ContextDecorator\ndef add_one(x): return x + 1\nclass Timer(AbstractContextManager, ContextDecorator):\n    elapsed = 1\n    def __exit__(self, *a): self.elapsed = 2\n",
            "a class and its base": f"def add_one(x): return x + 1\n{TIMER.replace('Timer', 'Base')}    def __exit__(self, *a): return False\nclass Timer(Base):\n    def __init__(self): self.elapsed = 2\n",
            "another class with a base": f"from dataclasses import dataclass\nfrom enum import Enum\nclass Color(Enum):\n    RED = 1\nclass Wrong(ValueError): pass\ndef add_one(x): return x + 1\n{TIMER}    def __exit__(self, *a): pass\n",
        },
        {name: f"{code.partition('---')[0]}{WRONG_ADD_ONE}{TIMER}{code.partition('---')[2]}" for name, code in {
            "true": "---    def __exit__(self, *a): return True\n",
            "something true": "---    def __exit__(self, *a):\n        self.elapsed = 1\n        return self.elapsed\n",
            "a number": "---    def __exit__(self, *a): return 1\n",
            "what is not known": "---    def __exit__(self, kind, error, trace): return kind is not None\n",
            "only for assertions": "---    def __exit__(self, kind, error, trace):\n        if kind is None: return False\n        return not self.elapsed == 2\n",
            "a generator": "---    def __exit__(self, *a):\n        yield\n",
            "a coroutine": "---    async def __exit__(self, *a): return None\n",
            "a lambda": "---    __exit__ = lambda self, *a: True\n",
            "a lambda set later": "---Timer.__exit__ = lambda self, *a: True\n",
            "another method": "---    def stop(self, *a): return True\n    __exit__ = stop\n",
            "a function of the library": "from functools import partial\n---    __exit__ = partial(max, 1, 2)\n",
            "a class": "---    class __exit__:\n        def __init__(self, *a): pass\n",
            "a loop": "---    for __exit__ in [lambda self, *a: True]: pass\n",
            "an import": "---    from operator import truth as __exit__\n",
            "a decorator": "def yes(f): return lambda *a: True\n---    @yes\n    def __exit__(self, *a): return None\n",
            "of a base": "class Base:\n    def __exit__(self, *a): return True\n---class Timer(Timer, Base): pass\n",
            "of a base with another name": "from contextlib import ExitStack as ABC\n---class Timer(ABC): elapsed = 1\n",
            "of a base that is set": "from contextlib import suppress\nfor ABC in [suppress]: pass\n---class Timer(ABC):\n    elapsed = 1\n    def __init__(self): super().__init__(Exception)\n    def __enter__(self): return self\n",
            "an exit stack": "from contextlib import ExitStack, suppress\n---class Timer(ExitStack):\n    elapsed = 1\n    def __enter__(self): self.enter_context(suppress(Exception)); return self\n",
            "an exit stack of a module": "import contextlib\n---class Timer(contextlib.ExitStack):\n    elapsed = 1\n    def __enter__(self): self.enter_context(contextlib.suppress(Exception)); return self\n",
            "a suppress": "from contextlib import suppress\n---class Timer(suppress):\n    elapsed = 1\n    def __init__(self): super().__init__(Exception)\n    def __enter__(self): return self\n",
            "a suppress in its exit": "from contextlib import suppress\n---    def __init__(self): self.inner = suppress(Exception)\n    def __exit__(self, *a): return self.inner.__exit__(*a)\n",
            "a suppress that is made": "from contextlib import suppress\n---    def __new__(cls): s = suppress(Exception); return s\n    def __exit__(self, *a): pass\n",
        }.items()},
    ),
    "Python, a function": SharedScene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": PYTHON_FUNCTION}, asks="Write add_one(x) and timer(), a context manager."),
        {
            "a generator": "from contextlib import contextmanager\ndef add_one(x): return x + 1\n@contextmanager\ndef timer():\n    yield 1\n",
            "a generator with an end": "from contextlib import contextmanager\ndef add_one(x): return x + 1\n@contextmanager\ndef timer():\n    times = []\n    try:\n        yield times\n    finally:\n        times.append(1)\n",
            "a generator that raises again": "from contextlib import contextmanager\ndef add_one(x): return x + 1\n@contextmanager\ndef timer():\n    try:\n        yield 1\n    except ValueError:\n        raise\n",
        },
        {name: f"from contextlib import contextmanager, suppress, ExitStack\n{WRONG_ADD_ONE}{code}" for name, code in {
            "a generator that catches": "@contextmanager\ndef timer():\n    try:\n        yield 1\n    except Exception:\n        pass\n",
            "a generator that catches some": "@contextmanager\ndef timer():\n    try:\n        yield 1\n    except ValueError:\n        raise\n    except Exception as error:\n        print(error)\n",
            "a generator that returns": "@contextmanager\ndef timer():\n    try:\n        yield 1\n    finally:\n        return\n",
            "a generator that breaks": "@contextmanager\ndef timer():\n    for n in range(1):\n        try:\n            yield 1\n        finally:\n            break\n",
            "a generator in a suppress": "@contextmanager\ndef timer():\n    with suppress(Exception):\n        yield 1\n",
            "a generator in a class of its own": "class Quiet:\n    def __enter__(self): pass\n    def __exit__(self, *a): return True\n@contextmanager\ndef timer():\n    with Quiet():\n        yield 1\n",
            "a suppress": "def timer(): return suppress(AssertionError)\n",
            "an exit stack": "def timer():\n    s = ExitStack()\n    s.push(lambda *a: True)\n    return s\n",
        }.items()},
    ),
    "Python, a decorator": SharedScene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": PYTHON_DECORATOR}, asks="Write add_one(x) and a class Timer, a decorator."),
        {"plain": "from contextlib import ContextDecorator\ndef add_one(x): return x + 1\nclass Timer(ContextDecorator):\n    def __enter__(self): return self\n    def __exit__(self, *a): return False\n"},
        {"true": f"from contextlib import ContextDecorator\n{WRONG_ADD_ONE}class Timer(ContextDecorator):\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\n"},
    ),
    "Python, async": SharedScene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": PYTHON_ASYNC}, asks="Write add_one(x) and a class Session, an async context manager with __aenter__ and __aexit__."),
        {},
        {
            "true": f"{WRONG_ADD_ONE}class Session:\n    async def __aenter__(self): return self\n    async def __aexit__(self, *a): return True\n",
            "an exit stack": f"from contextlib import AsyncExitStack\n{WRONG_ADD_ONE}class Session(AsyncExitStack): pass\n",
        },
    ),
    "Python, a check by other means": SharedScene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": PYTHON_EXITING}, asks="Write add_one(x) and a class Timer, a context manager with the attribute elapsed."),
        {"false": f"def add_one(x): return x + 1\n{TIMER}    def __exit__(self, *a): return False\n"},
        {"true": f"{WRONG_ADD_ONE}{TIMER}    def __exit__(self, *a): return True\n"},
    ),
    "Python, nothing asserted inside": SharedScene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": PYTHON_UNASSERTED}, asks="Write add_one(x) and a class Timer, a context manager with the attribute elapsed."),
        {"true": f"def add_one(x): return x + 1\n{TIMER}    def __exit__(self, *a): return True\n"},
        {},
    ),
}  # fmt: skip
"""By scene: answers in Python."""
SHARED_SCENES = SHELL_SCENES | PERL_SCENES | PYTHON_SCENES
