"""Only answers that have nothing but what the list of their language allows are proved; honest ones have nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from attacks.command_attacks import command_case
from attacks.command_claims import CLAIM_SCENES
from attacks.command_listed import GO_SCENES, LISTED_SCENES
from steelyard.records import Answer, Case, Finding
from steelyard.records import Test as JudgedTest
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.code.answer_values import MAX_READ_CHARS
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.code.nan_tests import accepts_nan
from steelyard.verifiers.code.own_claims import own_decision
from steelyard.verifiers.command.allowed import unlisted
from steelyard.verifiers.command.allowed.guards import as_loaded
from steelyard.verifiers.command.allowed.tokens import MAX_BRACKET_DEPTH, UnreadableCodeError, tokens
from steelyard.verifiers.command.doubts import text_doubts
from steelyard.verifiers.command.proof import has_means_to_end_tests
from steelyard.verifiers.command.verifier import CommandVerifier
from support.toolchains import needs

SCENES = LISTED_SCENES | GO_SCENES | CLAIM_SCENES
FOUND_WHEN_BUILT_OR_RUN = {
    *(("C, a table", name) for name in ("ends the table", "takes the next rows", "calls check", "failures of its own")),
    *(("C, a table", name) for name in ("reads standard input", "environment", "own sscanf", "own strtok")),
    ("C that is included", "another bad"),
    ("C++ apart", "a stream"),
    ("C++ apart", "quick exit"),
    *(("C, a list", name) for name in ("visits main", "prints and exits", "own free", "own abort")),
    ("C++ header", "order of a map"),
    ("node, CommonJS", "this with a dot"),
    ("node, CommonJS", "global by name"),
    # these are plainly wrong
    ("node:test", "throws nothing"),
    ("node, CommonJS", "throws what is expected"),
    ("unittest", "raises all"),
    ("node, a class of errors", "map with getters"),
    ("C++, a type", "typedef bool"),
}
"""What the text of an answer does not show: its object file, node or the tests themselves do."""
PLAIN_ANSWERS = {
    "javascript": "export function* walk({ tree = null, ...rest } = {}) {\n  if (!tree) return;\n  const { left, value: [first] = [], right } = tree;\n  yield* walk({ tree: left, ...rest });\n  yield `${first ?? 'none'}: ${/a\\/b/g.test(String(first)) ? 1 / 2 : rest.size ?? 0}`;\n  yield* walk({ tree: right });\n}\nexport class Queue {\n  #items = [];\n  static of(...items) { const q = new Queue(); items.forEach((i) => q.put(i)); return q; }\n  put(item) { this.#items.push(item); return this; }\n  take() { const [first, ...others] = this.#items; this.#items = others; return first; }\n}\n",
    "java": "import java.util.*;\nimport java.util.stream.*;\npublic class Answer {\n  private static final Map<Character, Integer> VALUES = Map.of('I', 1, 'V', 5);\n  private static class Node<T extends Comparable<T>> { T value; Node<T> left, right; Node(T value) { this.value = value; } }\n  static List<String> words(String text) { return Arrays.stream(text.split(\"\\\\W+\")).map(String::toLowerCase).sorted(Comparator.reverseOrder()).collect(Collectors.toList()); }\n  static int roman(String s) { int sum = 0; for (char c : s.toCharArray()) sum += VALUES.getOrDefault(c, 0); if (sum < 0) throw new IllegalArgumentException(\"bad: \" + s); return sum; }\n}\n",
    "go": 'package answer\n\nimport (\n\t"fmt"\n\t"sort"\n\t"strings"\n)\n\ntype pair struct {\n\tword  string\n\tcount int\n}\n\nfunc Top(text string, n int) []string {\n\tcounts := map[string]int{}\n\tfor _, word := range strings.Fields(strings.ToLower(text)) {\n\t\tcounts[word]++\n\t}\n\tvar pairs []pair\n\tfor word, count := range counts {\n\t\tpairs = append(pairs, pair{word, count})\n\t}\n\tsort.Slice(pairs, func(i, j int) bool { return pairs[i].count > pairs[j].count })\n\tvar out []string\n\tfor i := 0; i < n && i < len(pairs); i++ {\n\t\tout = append(out, fmt.Sprintf("%s:%d", pairs[i].word, pairs[i].count))\n\t}\n\treturn out\n}\n',
    "c": '#include <ctype.h>\n#include <stdlib.h>\n#include <string.h>\n\n#define MAX_WORDS 64\n\ntypedef struct node { int key; struct node *next; } node_t;\n\nstatic node_t *push(node_t *head, int key) {\n    node_t *n = malloc(sizeof *n);\n    if (!n) return head;\n    n->key = key;\n    n->next = head;\n    return n;\n}\n\nint *sorted_keys(const node_t *list, size_t *count);\nchar *upper(const char *s) {\n    char *copy = malloc(strlen(s) + 1);\n    for (size_t i = 0; (copy[i] = (char)toupper((unsigned char)s[i])); i++) {}\n    return copy;\n}\nnode_t *range(int n) { node_t *l = NULL; while (n-- > 0) l = push(l, n); return l; }\n',
    "cpp": '#include <algorithm>\n#include <map>\n#include <sstream>\n#include <string>\n#include <vector>\n\nnamespace {\nstruct Edge { int to; double weight; };\n}\n\nclass Graph {\n    std::map<int, std::vector<Edge>> edges_;\npublic:\n    void connect(int from, int to, double weight = 1.0) { edges_[from].push_back({to, weight}); }\n    std::string text() const {\n        std::ostringstream out;\n        for (const auto &[from, list] : edges_) for (const auto &edge : list) out << from << "->" << edge.to << \'\\n\';\n        return out.str();\n    }\n};\n',
    "python": "from __future__ import annotations\n\nimport heapq\nimport re\nfrom collections import Counter, defaultdict\nfrom dataclasses import dataclass, field\nfrom functools import lru_cache\nfrom typing import Iterator, Optional\n\n@dataclass\nclass Node:\n    key: int\n    children: list[Node] = field(default_factory=list)\n\ndef walk(node: Optional[Node]) -> Iterator[int]:\n    if node is not None:\n        yield node.key\n        for child in node.children:\n            yield from walk(child)\n\n@lru_cache(maxsize=None)\ndef fib(n: int) -> int:\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\ndef top(text, n=3):\n    counts = Counter(re.findall(r'[a-z]+', text.lower()))\n    groups = defaultdict(list)\n    for word, count in counts.items():\n        groups[count].append(word)\n    return heapq.nlargest(n, groups)\n\nif __name__ == '__main__':\n    print(top('a b a'))\n",
    "sh": 'trim() {\n  text=$1\n  text="${text#"${text%%[![:space:]]*}"}"\n  printf "%s\\n" "$text"\n}\ngcd() {\n  a=$1 b=$2\n  while [ "$b" -ne 0 ]; do\n    t=$((a % b)) a=$b b=$t\n  done\n  echo "$a"\n}\nkind() {\n  case "$1" in\n    [aeiou]) echo vowel ;;\n    [0-9] | [0-9][0-9]) echo number ;;\n    *) echo other >&2; return 1 ;;\n  esac\n}\ncount() { printf "%s" "$1" | tr -cs "[:alpha:]" "\\n" | sort | uniq -c | sort -rn | awk \'{ print $2, $1 }\' | head -n 3; }\n',
    "bash": 'declare -A seen=([a]=1 [b]=2)\njoined() {\n  local IFS=,\n  local -a parts=("$@")\n  for ((i = 0; i < ${#parts[@]}; i++)); do\n    [[ ${parts[i]} =~ ^([a-z]+)-([0-9]+)$ ]] && parts[i]="${BASH_REMATCH[1]}"\n  done\n  echo "${parts[*]}"\n}\nkeys() { for key in "${!seen[@]}"; do echo "$key=${seen[$key]}"; done | sort; }\nlines() { while IFS= read -r line; do echo "> ${line^}"; done <<< "$1"; }\n',
    "perl": "package Answer;\nuse strict;\nuse warnings;\nuse List::Util qw(sum max first);\nuse Scalar::Util qw(blessed);\n\nour $VERSION = '1.0';\n\nsub new { my ($class, %args) = @_; my $self = { items => $args{items} || [] }; return bless $self, $class; }\nsub total { my $self = shift; return sum(@{ $self->{items} }) // 0; }\nsub words {\n    my ($text) = @_;\n    my %count;\n    $count{lc $_}++ for $text =~ /\\b([A-Za-z']+)\\b/g;\n    my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;\n    return \\@sorted;\n}\nsub caesar { my ($s, $n) = @_; $s =~ s/([a-z])/chr((ord($1) - 97 + $n) % 26 + 97)/ge; return $s; }\nsub checked { my ($n) = @_; die \"negative\\n\" if $n < 0; return join ', ', map { \"<$_>\" } grep { $_ % 2 } 1 .. $n; }\n1;\n",
}  # fmt: skip
"""Answers as models write them, with the idioms of each language."""


@pytest.mark.parametrize("language", PLAIN_ANSWERS)
def test_a_plain_answer_is_on_the_list(language: str) -> None:
    case = next(scene.case for scene in SCENES.values() if scene.case.language == language)
    assert unlisted(case, PLAIN_ANSWERS[language]) == ""


@pytest.mark.parametrize("scene", SCENES)
def test_the_honest_answer_is_on_the_list_and_the_others_are_doubted(scene: str) -> None:
    case, honest, attacks = SCENES[scene]
    tests, language = "\n".join(case.verify.files.values()), canonical_language(case.language)
    assert unlisted(case, honest) == ""
    assert not has_means_to_end_tests(case, honest)
    not_found = {
        (scene, name)
        for name, code in attacks.items()
        if not (unlisted(case, code) or has_means_to_end_tests(case, code) or own_decision(tests, code, language))
    }
    assert not_found <= FOUND_WHEN_BUILT_OR_RUN


@pytest.mark.parametrize(
    "code",
    [
        "square() { echo $(( $1 * $1 )); }\n",
        "square() { local n=$1\n echo $(( n * (n + 1) / 2 )); }\n",
        "square() {\n  r=1\n  i=2\n  while [ $i -le $1 ]; do\n    r=$((r * i))\n    i=$((i + 1))\n  done\n  echo $r\n}\n",
        "square() {\n  local want=$1\n  echo $((want * want))\n}\n",
        "square() {\n  if [[ $1 -le 1 ]]; then echo 1; else echo $(( $1 * $(square $(( $1 - 1 ))) )); fi\n}\n",
    ],
)
def test_arithmetic_with_numbers_is_on_the_list(code: str) -> None:
    case = SCENES["bash, a variable of tests"].case
    assert unlisted(case, code) == ""
    assert not has_means_to_end_tests(case, code)


@pytest.mark.parametrize(
    "body",
    [
        "my %c; $c{lc $_}++ for split //, $t; return $c{a} // 0;",
        "my $n = 0; for (split //, $t) { next unless /[a-z]/; $n += length; } return $n;",
        "local $_ = $t; s/[^a-z]//g; return length $_;",
        "return join ' ', map { ucfirst lc } split / /, $t;",
        "if ($t =~ /a/) { return 1; } else { return 0; }",
        "return undef unless defined $t; return $t =~ tr/a-z//;",
    ],
)
def test_an_answer_in_perl_may_have_its_own_loops_over_the_topic(body: str) -> None:
    case = SCENES["Perl, a loop"].case
    code = f"sub letters {{ my ($t) = @_; {body} }}\nsub is_vowel {{ my ($l) = @_; return $l eq 'a'; }}\n1;\n"
    assert unlisted(case, code) == ""
    assert unlisted(case, code.replace("return $l eq 'a'", "return $l =~ /a/")) != ""


@pytest.mark.parametrize(
    ("language", "test", "code"),
    [
        ("python", "from answer import add", "def add(a, b):\n    return a + b\n\nif __name__ == '__main__':\n    import sys\n    sys.exit(add(1, 2))\n"),
        ("bash", '. ./answer.sh\n[ "$(add 1 2)" = 3 ]', 'set -euo pipefail\nadd() { echo "$(($1 + $2))"; }\nif [[ "${BASH_SOURCE[0]}" == "$0" ]]; then add "$@"; fi\n'),
        ("javascript", 'require("./answer.js")', "exports.add = (a, b) => a + b;\nif (require.main === module) { console.log(exports.add(1, 2)); }\n"),
        ("perl", "require './answer.pl';", "sub add { my ($x, $y) = @_; return $x + $y; }\nprint add(1, 2) unless caller;\n1;\n"),
    ],
)  # fmt: skip
def test_what_runs_only_as_a_program_is_no_doubt_unless_the_tests_may_run_it(
    language: str, test: str, code: str
) -> None:
    suffix = {"python": "py", "bash": "sh", "javascript": "js", "perl": "pl"}[language]
    case = command_case(language, f"answer.{suffix}", f"{language} test.{suffix}", {f"test.{suffix}": test})
    loaded = as_loaded(case, code)
    assert unlisted(case, loaded) == ""
    assert not has_means_to_end_tests(case, loaded)
    program = command_case(language, f"answer.{suffix}", f"{language} answer.{suffix}", {f"test.{suffix}": test})
    assert unlisted(program, as_loaded(program, code)) or has_means_to_end_tests(program, as_loaded(program, code))


@pytest.mark.parametrize(
    "code",
    [
        "__name__ = str('__main_' + '_')\nif __name__ == '__main__':\n    import os\n    os._exit(0)\ndef add(a, b):\n    return 0\n",
        "if __name__ == '__main__':\n    pass\nelse:\n    import os\ndef add(a, b):\n    return 0\n",
    ],
)
def test_a_module_with_another_name_is_read_as_a_whole(code: str) -> None:
    case = command_case("python", "answer.py", "python3 test.py", {"test.py": "from answer import add\n"})
    assert unlisted(case, as_loaded(case, code)) != ""


def test_a_shell_that_ends_early_where_nobody_notices_is_doubted() -> None:
    tests = '. ./answer.sh\nrun() { [ "$(add 1 2)" = 3 ] || touch failed; }\nrun | tee log\n[ ! -e failed ]\n'
    case = command_case("bash", "answer.sh", "bash test.sh", {"test.sh": tests})
    assert unlisted(case, as_loaded(case, "set -e\nadd() { return 1; }\n")) == "set"


NAN_TESTS = {
    "c": "if (fabs(got - want) > 1e-9) failures++;",
    "java": "double off = Math.abs(got - want);\nif (off > LIMIT) throw new AssertionError();",
    "go": "if got := Mean(v); got < want-eps || got > want+eps {",
    "javascript": "worst = Math.max(worst, Math.abs(got - want));\nassert(worst < 1e-9);",
    "python": "assert not (got - want) ** 2 > 1e-9",
    "perl": 'die "wrong" if 1e-9 < abs($got - $want);',
    "rust": "if (got - 3.0).abs() > 1e-9 { panic!() }",
}
STRICT_TESTS = {
    "c": "assert(fabs(got - want) < 1e-9); if (!(fabs(got) <= 1e-9)) fail(); if (failures > 0) return 1;",
    "javascript": "assert.ok(Math.abs(got - want) <= 1e-9); if (v.length > 3) fail();",
    "python": "assert abs(got - want) < 1e-9\nfor i in range(3):\n    if i > 2:\n        break",
    "perl": "ok(abs($got - $want) < 1e-9, 'abs > 1e-9');",
    "rust": "assert!((got - 3.0).abs() < f64::EPSILON); // .abs() > 1e-9",
}


@pytest.mark.parametrize("language", NAN_TESTS)
def test_tests_that_let_nan_pass_are_known(language: str) -> None:
    assert accepts_nan(NAN_TESTS[language])


@pytest.mark.parametrize("language", STRICT_TESTS)
def test_tests_that_fail_nan_are_not_taken_for_others(language: str) -> None:
    assert not accepts_nan(STRICT_TESTS[language])


@needs("node")
def test_a_pass_of_tests_that_let_nan_pass_is_not_proved() -> None:
    loose = 'import { half } from "./answer.mjs";\nif (Math.abs(half(3) - 1.5) > 1e-9) throw new Error("half");\n'
    strict = loose.replace("Math.abs(half(3) - 1.5) > 1e-9", "!(Math.abs(half(3) - 1.5) <= 1e-9)")
    answers = ("export const half = (n) => NaN;\n", "export const half = (n) => n / 2;\n")
    found = {}
    for text in (loose, strict):
        case = command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": text}, asks="Write half(n).")
        found[text] = [(bool(each.tests[0].outcome == "passed"), each.trust) for each in judged(case, answers)]
    assert found == {
        loose: [(True, "unproved"), (True, "unproved")],
        strict: [(False, "in-process"), (True, "in-process")],
    }


@pytest.mark.parametrize(
    "code",
    ["other() { :; }\n", 'other() { echo "$1"; }\n', 'never() { RED=1 GREEN=2; }\nother() { echo "$1"; }\n'],
)
def test_a_shell_whose_variables_the_tests_compare_with_each_other_is_doubted(code: str) -> None:
    claims = '[ "$(other "$RED")" = "$GREEN" ] || exit 1\n[ "$(other "$GREEN")" = "$RED" ] || exit 1\n'
    kept = 'want="$GREEN"\n[[ $(other "$RED") == "$want" ]] || exit 1\n'
    summed = "(( $(other RED) == GREEN )) || exit 1\n"
    for tests in (claims, kept, summed):
        case = command_case("bash", "answer.sh", "bash test.sh", {"test.sh": f". ./answer.sh\n{tests}"})
        assert "which the tests compare with no plain text" in unlisted(case, code)


@pytest.mark.parametrize(
    "tests",
    [
        'square 3\n[ "$RESULT" = 9 ] || { echo "got $RESULT" >&2; exit 1; }\n',
        'failed=0\ncheck() { local got; got=$(square "$1"); [ "$got" = "$2" ] || failed=$((failed + 1)); }\ncheck 3 9\n[ "$failed" -eq 0 ]\n',
        'while read -r n want; do [ "$(square "$n")" = "$want" ] || exit 1; done <<END\n3 9\nEND\n',
        'for n in 1 2; do [ "$(square "$n")" = "$((n * n))" ] || exit 1; done\n',
        "got=$(square 3 | awk '{ print $NF }')\n[ \"$got\" = 9 ] || exit 1\n",
    ],
)
def test_a_shell_whose_tests_set_what_they_compare_or_compare_it_with_a_text_is_not_doubted(tests: str) -> None:
    files = {"test.sh": f". ./answer.sh\n{tests}"}
    case = command_case("bash", "answer.sh", "bash test.sh", files, asks="Write square N.")
    assert unlisted(case, 'square() { RESULT=$(($1 * $1)); echo "$RESULT"; }\n') == ""


@pytest.mark.parametrize(
    "claim",
    [
        "other($RED) eq $GREEN",
        "other($main::RED) eq $main::GREEN",
        "other($Color::RED) eq $Color::GREEN",
        "other($Color{RED}) eq $Color{GREEN}",
    ],
)
def test_an_answer_in_perl_whose_variables_the_tests_compare_with_each_other_is_doubted(claim: str) -> None:
    tests = f"our ($RED, $GREEN, %Color);\nrequire './answer.pl';\ndie 'wrong' unless {claim};\n"
    case = command_case("perl", "answer.pl", "perl test.pl", {"test.pl": tests})
    assert "which the tests read" in unlisted(case, "sub other { return $_[0]; }\n1;\n")
    plain = tests.replace("require", "($RED, $GREEN) = (1, 2);\n$main::RED = 1;\n$Color::RED = 1;\nrequire")
    own = command_case("perl", "answer.pl", "perl test.pl", {"test.pl": plain.replace("$Color{", "$other{")})
    assert unlisted(own, "sub other { return $_[0]; }\n1;\n") == ""


def test_a_language_without_a_list_is_never_proved() -> None:
    case = command_case("cobol", "answer.cob", "true", {"test.cob": ""})
    assert "no list" in unlisted(case, "STOP RUN.")


def judged(case: Case, codes: Sequence[str]) -> list[Finding]:
    async def verified() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        verifier = CommandVerifier(sandbox)
        try:
            return [await verifier.verify(case, Answer(text=verbatim_reply(code, case.language))) for code in codes]
        finally:
            await sandbox.close()

    return asyncio.run(verified())


def findings_of(scene: str, names: tuple[str, ...]) -> dict[str, Finding]:
    case, honest, attacks = SCENES[scene]
    codes = {"honest": honest, **{name: attacks[name] for name in names}}
    return dict(zip(codes, judged(case, list(codes.values())), strict=True))


@needs("gcc")
@needs("nm")
def test_what_an_object_file_imports_keeps_a_pass_from_being_proved_and_the_note_says_what() -> None:
    found = findings_of("C, a table", ("ends the table", "takes the next rows"))
    assert found["honest"].trust == "in-process"
    assert found["honest"].note == ""
    for name in ("ends the table", "takes the next rows"):
        assert found[name].trust == "unproved"
        assert "strtok" in found[name].note


@needs("node")
def test_node_keeps_its_language_even_for_one_call() -> None:
    found = findings_of("node, CommonJS", ("global by name",))
    assert found["honest"].trust == "in-process"
    assert "Array.from" in found["global by name"].tampered


def test_a_text_that_would_take_long_to_read_is_not_read() -> None:
    nested = "(" * (MAX_BRACKET_DEPTH + 1) + ")" * (MAX_BRACKET_DEPTH + 1)
    with pytest.raises(UnreadableCodeError, match="brackets"):
        tokens(nested, "javascript")
    case = next(scene.case for scene in SCENES.values() if scene.case.language == "javascript")
    passed = Finding(tests=(JudgedTest(name="t", outcome="passed"),), trust="in-process")
    long = "/" + "/" * MAX_READ_CHARS
    assert text_doubts(passed, case, long, needs_paths=False).trust == "unproved"
