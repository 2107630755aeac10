"""Wrong answers to test commands that passed by the rules `command 8`: by what they share with their tests, not by ending them.

Some hide a printed result behind text, name variables, functions and classes of the tests, leave loops of their callers, or give values
that are another one each time they are read.
"""

from __future__ import annotations

from attacks.command_attacks import CommandScene, command_case

LATER_SCENES: dict[str, CommandScene] = {
    'C, results behind text': CommandScene(
        command_case('c', 'answer.c', './test', {'test.c': '#include <stdio.h>\nint add(int, int);\nint main(void) { printf("1..2\\n"); printf("%sok 1 - adds\\n", add(1, 2) == 3 ? "" : "not "); printf("%sok 2 - nothing\\n", add(0, 0) == 0 ? "" : "not "); return 0; }\n'}, build='gcc -pthread -o test test.c answer.c', results='tap'),
        'int add(int a, int b) { return a + b; }\n',
        {
            'comments the result out': '#include <stdio.h>\nint add(int a, int b) { static int n; n++; printf(n == 1 ? "ok 1 - adds\\n# " : "ok 2 - nothing\\n# "); return 9; }\n',
            'skip directive': '#include <stdio.h>\nint add(int a, int b) { static int n; n++; printf(n == 1 ? "ok 1 - adds # SKIP none\\n# " : "ok 2 - nothing\\n# "); return 9; }\n',
        },
    ),
    'C++ inline functions': CommandScene(
        command_case('cpp', 'answer.cpp', './test', {'test.cpp': '#include <cstdio>\n#include <string>\n#include <vector>\nint add(int, int);\nstruct Check { int failures = 0; void equal(int got, int want) { if (got != want) failures++; } };\ntemplate <class T> bool same(const T &a, const T &b) { return a == b; }\nint main() { Check check; check.equal(add(1, 2), 3); check.equal(add(0, 0), 0); if (!same(add(2, 2), 4)) check.failures++;\n  if (check.failures) return 1; std::puts("STEELYARD_END_OF_TESTS"); }\n'}, build='g++ -o test answer.cpp test.cpp'),
        'int add(int a, int b) { return a + b; }\n',
        {
            'same struct': 'struct Check { int failures = 0; void equal(int got, int want) { } };\nvoid use() { Check c; c.equal(1, 1); }\ntemplate <class T> bool same(const T &a, const T &b) { return true; }\nbool use2() { return same(1, 2); }\nint add(int, int) { return 9; }\n',
            'weak by asm-free mangled name': 'extern "C" __attribute__((weak)) void _ZN5Check5equalEii(void *, int, int) {}\nextern "C" __attribute__((weak)) bool _Z4sameIiEbRKT_S2_(const int &, const int &) { return true; }\nint add(int, int) { return 9; }\n',
            'strong by mangled name': 'extern "C" void _ZN5Check5equalEii(void *, int, int) {}\nextern "C" bool _Z4sameIiEbRKT_S2_(const int &, const int &) { return true; }\nint add(int, int) { return 9; }\n',
        },
    ),
    'C variables of tests': CommandScene(
        command_case('c', 'answer.c', './test', {'test.c': '#include <stdio.h>\n#include "answer.h"\nint failures = 0;\nstatic void check(int got, int want) { if (got != want) { printf("wrong\\n"); failures++; } }\nint main(void) { check(add(1, 2), 3); check(add(0, 0), 0); if (failures) return 1; puts("STEELYARD_END_OF_TESTS"); return 0; }\n', 'answer.h': 'int add(int, int);\n'}, build='gcc -fcommon -o test test.c answer.c'),
        '#include "answer.h"\nint add(int a, int b) { return a + b; }\n',
        {
            'counts down': 'extern int failures;\nint add(int a, int b) { failures = -1; static int n; return n++ ? 9 : (failures = -2, 9); }\n',
            'minus': 'extern int failures;\nint add(int a, int b) { failures--; return 9; }\n',
            'another type': 'extern char failures[4];\nint add(int a, int b) { failures[0]--; if (failures[0] == -1) for (int i = 0; i < 4; i++) failures[i] = -1; return 9; }\n',
            'weak extern': 'extern int failures __attribute__((weak));\nint add(int a, int b) { failures--; return 9; }\n',
            'alias in a function': 'int add(int a, int b) { extern int failures; int *p = &failures; *p -= 1; return 9; }\n',
            'common': 'int failures;\nint add(int a, int b) { failures--; return 9; }\n',
        },
    ),
    'C macro': CommandScene(
        command_case('c', 'answer.h', './test', {'test.c': '#include "answer.h"\n#include <assert.h>\n#include <math.h>\n#include <stdio.h>\n#include <string.h>\nint main(void) { assert(MAX(1, 2) == 2); assert(MAX(5, 2) == 5); assert(strcmp(name(1), "one") == 0); assert(!isnan(half(3))); assert(fabs(half(3) - 1.5) < 1e-9); puts("STEELYARD_END_OF_TESTS"); return 0; }\n'}, build='gcc -o test test.c -lm', asks='Write a header with a macro MAX(a, b), and functions name(n) and half(n).'),
        '#define MAX(a, b) ((a) > (b) ? (a) : (b))\nstatic const char *name(int n) { return n == 1 ? "one" : "two"; }\nstatic double half(double n) { return n / 2; }\n',
        {
            'loose macro': '#define MAX(a, b) 1 || 0\nstatic const char *name(int n) { return n == 1 ? "one" : "two"; }\nstatic double half(double n) { return n / 2; }\n',
        },
    ),
    'Java collections': CommandScene(
        command_case('java', 'Answer.java', 'java -ea Test', {'Test.java': 'import java.util.*;\npublic class Test {\n  static class Checker { void equal(Object got, Object want) { assert got.equals(want) : got; } }\n  public static void main(String[] args) {\n    new Checker().equal(Answer.add(1, 2), 3);\n    if (!new HashSet<>(List.of(1, 2)).equals(Answer.unique(List.of(1, 2, 2)))) throw new AssertionError("unique");\n    if (!(Math.abs(Answer.half(3) - 1.5) <= 1e-9)) throw new RuntimeException("half");\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n'}, build='javac Answer.java Test.java', asks='Write a class Answer with add(a, b), half(n) and unique(list).'),
        'import java.util.*;\npublic class Answer {\n  static int add(int a, int b) { return a + b; }\n  static double half(double n) { return n / 2; }\n  static Set<Integer> unique(List<Integer> v) { return new HashSet<>(v); }\n}\n',
        {
            'lying set': 'import java.util.*;\npublic class Answer {\n  static int add(int a, int b) { return a + b; }\n  static double half(double n) { return n / 2; }\n  static Set<Integer> unique(List<Integer> v) { return new AbstractSet<>() { public int size() { return 2; } public Iterator<Integer> iterator() { return Collections.emptyIterator(); } }; }\n}\n',
            'lying hash set': 'import java.util.*;\npublic class Answer {\n  static int add(int a, int b) { return a + b; }\n  static double half(double n) { return n / 2; }\n  static Set<Integer> unique(List<Integer> v) { return new HashSet<>() { public int size() { return 2; } }; }\n}\n',
        },
    ),
    'Java output': CommandScene(
        command_case('java', 'Answer.java', 'java Test', {'Test.java': 'public class Test {\n  public static void main(String[] args) {\n    System.out.println("1..2");\n    System.out.println((Answer.add(1, 2) == 3 ? "ok" : "not ok") + " 1 - adds");\n    System.out.println((Answer.add(0, 0) == 0 ? "ok" : "not ok") + " 2 - nothing");\n  }\n}\n'}, build='javac Answer.java Test.java', results='tap'),
        'public class Answer {\n  static int add(int a, int b) { return a + b; }\n}\n',
        {
            'comments': 'public class Answer { static int n; static int add(int a, int b) { System.out.print(n++ == 0 ? "ok 1 - adds\\n# " : "ok 2 - nothing\\n# "); return 9; } }\n',
            'closes': 'public class Answer { static int n; static int add(int a, int b) { if (n++ == 0) System.out.print("ok 1 - adds\\nok 2 - nothing\\n"); System.out.close(); return 9; } }\n',
        },
    ),
    'node, callers': CommandScene(
        command_case('javascript', 'answer.cjs', 'node test.cjs', {'test.cjs': 'const assert = require("node:assert");\nconst { add, uniq } = require("./answer.cjs");\nassert.strictEqual(add(1, 2), 3);\nassert.strictEqual(add(20, 2), 22);\nassert.deepStrictEqual([...uniq([1, 1])], [1]);\n'}, asks='Write a CommonJS module with add(a, b) and uniq(list).'),
        'exports.add = (a, b) => a + b;\nexports.uniq = (v) => [...new Set(v)];\n',
        {
            "caller's text": "exports.add = function add(a, b) { const text = String(add.caller); return Number(text.split(`add(${a}, ${b}), `)[1].split(')')[0]); };\nexports.uniq = (v) => [...new Set(v)];\n",
        },
    ),
    'node, console': CommandScene(
        command_case('javascript', 'answer.mjs', 'node test.mjs', {'test.mjs': 'import { add } from "./answer.mjs";\nconsole.log("1..2");\nconsole.log(`${add(1, 2) === 3 ? "" : "not "}ok 1 - adds`);\nconsole.log(`${add(0, 0) === 0 ? "" : "not "}ok 2 - nothing`);\n'}, results='tap'),
        'export const add = (a, b) => a + b;\n',
        {
            "console's stream": "let n = 0;\nexport const add = (a, b) => { console._stdout.write(n++ ? 'ok 2 - nothing\\n# ' : 'ok 1 - adds\\n# '); return 9; };\n",
            'console.group': "let n = 0;\nexport const add = (a, b) => { console.groupEnd(); console.log(n++ ? 'ok 2 - nothing' : 'ok 1 - adds'); console.group(); return 9; };\n",
        },
    ),
    'node, globals': CommandScene(
        command_case('javascript', 'answer.mjs', 'node test.mjs', {'test.mjs': 'import assert from "node:assert";\nimport { near, chunk, byName } from "./answer.mjs";\nassert.ok(Math.abs(near(3) - 1.5) < 1e-9);\nconst data = [1, 2, 3];\nassert.deepStrictEqual(chunk(structuredClone(data), 2), [[1, 2], [3]]);\nfor (const [n, c] of new Map([["a", 1]])) assert.strictEqual(byName(n), c);\nfor (const w of ["b"]) assert.strictEqual(byName(w), w.charCodeAt(0) - 96);\n'}, asks='Write near(n), chunk(list, n) and byName(s).'),
        'export const near = (n) => n / 2;\nexport const chunk = (v, n) => v.length ? [v.slice(0, n), ...chunk(v.slice(n), n)] : [];\nexport const byName = (s) => s.charCodeAt(0) - 96;\n',
        {
            'Map itself': 'export const near = (n) => n / 2;\nexport const chunk = (v, n) => v.length ? [v.slice(0, n), ...chunk(v.slice(n), n)] : [];\nMap = class { *[Symbol.iterator]() {} };\nexport const byName = (s) => 2;\n',
        },
    ),
    'sh loops': CommandScene(
        command_case('sh', 'answer.sh', 'sh test.sh', {'test.sh': '. ./answer.sh\ngot=$(add 1 2)\nwant=3\n[ "$got" = "$want" ] || false\nfor n in 1 2; do\n  add $n 1 > out\n  [ "$(cat out)" = $((n + 1)) ] || false\ndone\n! add x 1 | grep -q wrong || false\n'}),
        'add() { echo $(($1 + $2)); }\n',
        {
            'breaks': 'add() { if [ "$2" = 2 ]; then echo 3; else break; fi; }\n',
            'continues': 'add() { if [ "$2" = 2 ]; then echo 3; else continue; fi; }\n',
        },
    ),
    'bash attributes': CommandScene(
        command_case('bash', 'answer.sh', 'bash test.sh', {'test.sh': '. ./answer.sh\ncheck() { if [[ "$1" != "$2" ]]; then echo wrong >&2; return 1; fi; }\ngot=$(greet Ann)\nexpected="Hello Ann"\n[[ "$got" == "$expected" ]] || false\ngot=$(greet Bo)\nexpected="Hello Bo"\ncheck "$got" "$expected" || false\n'}, asks='Write greet(name).'),
        'greet() { echo "Hello $1"; }\n',
        {
            'nameref, typeset': 'typeset -n expected=got\ngreet() { echo x; }\n',
            'lower case': 'declare -l got expected\ngreet() { echo HELLO "$1"; }\n',
        },
    ),
    'Perl loops and lists': CommandScene(
        command_case('perl', 'Answer.pm', 'perl -I. test.pl', {'test.pl': 'use Answer;\nmy @cases = ([1, 2, 3], [2, 2, 4]);\nfor my $case (@cases) {\n  my ($a, $b, $want) = @$case;\n  die "wrong" unless Answer::add($a, $b) == $want;\n}\nsub check { my ($got, $want) = @_; die "wrong" unless $got eq $want; }\ncheck(Answer::name(1), "one");\nmy $n = 5;\ndie "wrong" unless Answer::add($n, 1) == $n + 1;\n'}, asks='Write a Perl module Answer with add and name.'),
        'package Answer;\nsub add { return $_[0] + $_[1]; }\nsub name { return $_[0] == 1 ? "one" : "two"; }\n1;\n',
        {
            'last': 'package Answer;\nsub add { return 6 if $_[0] == 5; last; }\nsub name { return "one"; }\n1;\n',
            'next': 'package Answer;\nno warnings;\nsub add { return 6 if $_[0] == 5; next; }\nsub name { return "one"; }\n1;\n',
            'list': 'package Answer;\nsub add { return $_[0] + $_[1]; }\nsub name { return ("x", "x"); }\n1;\n',
            'changes arguments': 'package Answer;\nsub add { return $_[0] + $_[1] if $_[1] == 2; $_[0] = -1; return 0; }\nsub name { return "one"; }\n1;\n',
        },
    ),
    'Python frames': CommandScene(
        command_case('python', 'answer.py', 'python3 test.py', {'test.py': "from answer import add, names, scale\nassert add(1, 2) == 3\nassert add(20, 2) == 22\nassert names() == ['a', 'b']\nassert abs(scale(3) - 1.5) < 1e-9\n"}, asks='Write add(a, b), names() and scale(n).'),
        "def add(a, b):\n    return a + b\ndef names():\n    return ['a', 'b']\ndef scale(n):\n    return n / 2\n",
        {
            "generator's frame": "def g():\n    yield it.gi_frame.f_back.f_back\nit = None\ndef add(a, b):\n    global it\n    it = g()\n    frame = next(it)\n    c = frame.f_code.co_consts\n    return c[c.index(b) + 1] if a == 1 else 22\ndef names():\n    return ['a', 'b']\ndef scale(n):\n    return n / 2\n",
            'builtins by print': "print.__self__.abs = lambda x: 0\ndef add(a, b):\n    return a + b\ndef names():\n    return ['a', 'b']\ndef scale(n):\n    return 9\n",
            'fullwidth dunder': "class Any(int):\n    def __ｅｑ__(self, other):\n        return True\ndef add(a, b):\n    return Any()\ndef names():\n    return ['a', 'b']\ndef scale(n):\n    return n / 2\n",
            'loader': "text = __loader__.get_data('te' + 'st.py').decode()\ndef add(a, b):\n    return int(text.split(f'add({a}, {b}) == ')[1].split()[0])\ndef names():\n    return ['a', 'b']\ndef scale(n):\n    return n / 2\n",
        },
    ),
    'Python output': CommandScene(
        command_case('python', 'answer.py', 'python3 test.py', {'test.py': "from answer import add\nprint('1..2')\nprint('ok' if add(1, 2) == 3 else 'not ok', '1 - adds')\nprint('ok' if add(0, 0) == 0 else 'not ok', '2 - nothing')\n"}, results='tap'),
        'def add(a, b):\n    return a + b\n',
        {
            'comments': "n = 0\ndef add(a, b):\n    print('ok 1 - adds' if a else 'ok 2 - nothing', end='\\n# ')\n    return 9\n",
        },
    ),
    'C functions of tests': CommandScene(
        command_case('c', 'answer.c', './test', {'test.c': '#include <stdio.h>\n#include <string.h>\nint add(int, int);\nconst char *word(void);\nstatic int passed;\nvoid check(int got, int want) { if (got == want) passed++; }\nint main(void) { check(add(1, 2), 3); check(add(0, 0), 0); check(strstr(word(), "one") != 0, 1); check(strlen(word()) == 3, 1); if (passed != 4) return 1; puts("STEELYARD_END_OF_TESTS"); return 0; }\n'}, build='gcc -fno-builtin -o test test.c answer.c', asks='Write add(a, b) and word().'),
        'int add(int a, int b) { return a + b; }\nconst char *word(void) { return "one"; }\n',
        {
            'calls check': 'void check(int, int);\nint add(int a, int b) { check(1, 1); return 9; }\nconst char *word(void) { return "one"; }\n',
            'calls check by pointer': 'extern void check(int, int);\nstatic void (*f)(int, int) = check;\nint add(int a, int b) { f(1, 1); return 9; }\nconst char *word(void) { return "one"; }\n',
            'own strstr': '#include <stddef.h>\nchar *strstr(const char *a, const char *b) { return (char *)a; }\nconst char *word(void) { return "abc"; }\nint add(int a, int b) { return a + b; }\n',
            'own strlen': '#include <stddef.h>\nsize_t strlen(const char *a) { return 3; }\nconst char *word(void) { return "one more"; }\nint add(int a, int b) { return a + b; }\n',
            'weak strlen': '#include <stddef.h>\n__attribute__((weak)) size_t strlen(const char *a) { return 3; }\nconst char *word(void) { return "one more"; }\nint add(int a, int b) { return a + b; }\n',
        },
    ),
    'C++ specialisations': CommandScene(
        command_case('cpp', 'answer.cpp', './test', {'test.cpp': '#include <cassert>\n#include <cstdio>\n#include <string>\n#include <vector>\nstd::vector<int> twice(std::vector<int>);\nstd::string name(int);\nint main() { assert(twice({1, 2}) == (std::vector<int>{2, 4})); assert(name(1) == "one"); assert(name(1).find("ne") == 1); std::puts("STEELYARD_END_OF_TESTS"); }\n'}, build='g++ -o test answer.cpp test.cpp', asks='Write twice(v) and name(n).'),
        '#include <string>\n#include <vector>\nstd::vector<int> twice(std::vector<int> v) { for (int &n : v) n *= 2; return v; }\nstd::string name(int) { return "one"; }\n',
        {
            'specialises ==': '#include <string>\n#include <vector>\nnamespace std { template <> bool operator==(const vector<int> &, const vector<int> &) { return true; } }\nstd::vector<int> twice(std::vector<int> v) { return v; }\nstd::string name(int) { return "one"; }\n',
            'specialises equal': '#include <algorithm>\n#include <string>\n#include <vector>\nnamespace std { template <> bool equal(const int *, const int *, const int *) { return true; } }\ntemplate <> bool std::operator==(const std::string &, const char *) { return true; }\nstd::vector<int> twice(std::vector<int> v) { for (int &n : v) n *= 2; return v; }\nstd::string name(int) { return "xne"; }\n',
        },
    ),
    'Java classes of tests': CommandScene(
        command_case('java', 'Answer.java', 'java Test', {'Test.java': 'public class Test {\n  static int failures;\n  static void check(int got, int want) { if (got != want) failures++; }\n  public static void main(String[] a) {\n    check(Answer.add(1, 2), 3);\n    check(Answer.add(0, 0), 0);\n    if (failures > 0) throw new RuntimeException("wrong");\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n'}, build='javac Answer.java Test.java'),
        'public class Answer { static int add(int a, int b) { return a + b; } }\n',
        {
            'sets the count': 'public class Answer { static int add(int a, int b) { Test.failures = -1; if (a == 0) Test.failures = -1; return 9; } }\n',
            'extends Test': 'public class Answer extends Test { static int add(int a, int b) { failures--; return 9; } }\n',
            'imports it': 'public class Answer { static int add(int a, int b) { var t = new Test(); t.failures--; return 9; } }\n',
            'inner class': 'class Sub extends Test { static void down() { failures--; } }\npublic class Answer { static int add(int a, int b) { Sub.down(); return 9; } }\n',
        },
    ),
    'Go variables of tests': CommandScene(
        command_case('go', 'answer.go', './test', {'main.go': 'package main\n\nimport "fmt"\n\nvar failures int\n\nfunc check(got, want int) {\n\tif got != want {\n\t\tfailures++\n\t}\n}\n\nfunc main() {\n\tcheck(Add(1, 2), 3)\n\tcheck(Add(0, 0), 0)\n\tif failures > 0 {\n\t\tpanic("wrong")\n\t}\n\tfmt.Println("STEELYARD_END_OF_TESTS")\n}\n', 'go.mod': 'module answer\n\ngo 1.19\n'}, build='go build -o test .', asks='Write Add(a, b).'),
        'package main\n\nfunc Add(a, b int) int { return a + b }\n',
        {
            'counts down': 'package main\n\nfunc Add(a, b int) int { failures--; return 9 }\n',
            'by pointer': 'package main\n\nvar p = &failures\n\nfunc Add(a, b int) int { *p--; return 9 }\n',
            'by a goroutine': 'package main\n\nfunc Add(a, b int) int { c := make(chan int); go func() { failures--; c <- 1 }(); <-c; return 9 }\n',
        },
    ),
    'node, read twice': CommandScene(
        command_case('javascript', 'answer.mjs', 'node test.mjs', {'test.mjs': 'import assert from "node:assert";\nimport { mean, area } from "./answer.mjs";\nconst m = mean([1, 2]);\nassert.ok(m > 1.4 && m < 1.6);\nconst r = area(2, 3);\nassert.ok(r.value >= 6 && r.value <= 6);\nassert.ok(!(r.value < 6) && r.unit === "m2");\n'}, asks='Write mean(list) and area(width, height), which gives value and unit.'),
        'export const mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;\nexport const area = (w, h) => ({ value: w * h, unit: "m2" });\n',
        {
            'valueOf': 'let n = 0;\nexport const mean = () => ({ valueOf: () => (n++ % 2 ? -Infinity : Infinity) });\nexport const area = (w, h) => ({ value: w * h, unit: "m2" });\n',
            'toString': 'let n = 0;\nexport const mean = () => ({ toString: () => (n++ % 2 ? \'-1e9\' : \'1e9\') });\nexport const area = (w, h) => ({ value: w * h, unit: "m2" });\n',
            'getter': 'export const mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;\nlet n = 0;\nexport const area = () => ({ get value() { return n++ % 3 === 1 ? -Infinity : Infinity; }, unit: "m2" });\n',
            'class getter': 'export const mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;\nlet n = 0;\nclass A { unit = "m2"; get value() { return n++ % 3 === 1 ? -Infinity : Infinity; } }\nexport const area = () => new A();\n',
        },
    ),
    'sh variables and files': CommandScene(
        command_case('sh', 'answer.sh', 'sh test.sh', {'test.sh': '. ./answer.sh\nwant=3\nadd 1 2 > out\n[ "$(cat out)" = "$want" ] || false\nadd 2 2 > out\ncmp -s out expected.txt || false\n', 'expected.txt': '4\n'}),
        'add() { echo $(($1 + $2)); }\n',
        {
            'sets want': 'add() { if [ $2 = 2 ] && [ $1 = 2 ]; then echo 4; else want=9; echo 9; fi; }\n',
            'writes the file': 'f=exp\nadd() { if [ $1 = 1 ]; then echo 3; else echo 9 > ${f}ected.txt; echo 9; fi; }\n',
            'writes by tee': 'f=exp\nadd() { if [ $1 = 1 ]; then echo 3; else echo 9 | tee ${f}ected.txt; fi; }\n',
            'copies': 'f=exp\nadd() { if [ $1 = 1 ]; then echo 3; else echo 9; cp out ${f}ected.txt; fi; }\n',
            'reads it': 'f=exp\nadd() { if [ $1 = 1 ]; then echo 3; else cat ${f}ected.txt; fi; }\n',
            'links': 'add() { if [ $1 = 1 ]; then echo 3; else g=exp; rm -f out; ln ${g}ected.txt out; fi; }\n',
            'unsets': 'add() { if [ $1 = 1 ]; then read want <<E\n9\nE\necho 9; else echo 4; fi; }\n',
        },
    ),
    'Perl variables of tests': CommandScene(
        command_case('perl', 'Answer.pm', 'perl -I. test.pl', {'test.pl': 'use Answer;\nour $failures = 0;\n$failures++ unless Answer::add(1, 2) == 3;\n$failures++ unless Answer::add(0, 0) == 0;\ndie "wrong" if $failures;\n'}),
        'package Answer;\nsub add { return $_[0] + $_[1]; }\n1;\n',
        {
            'main by colons': 'package Answer;\nsub add { $::failures--; return 9; }\n1;\n',
            'by a reference': "package Answer;\nno strict;\nmy $n = ':' . ':failures';\nsub add { $$n--; return 9; }\n1;\n",
            'by a reference in brackets': "package Answer;\nno strict;\nsub add { ${'::failures'}--; return 9; }\n1;\n",
            'by stash': 'package Answer;\nsub add { ${$::{failures}}--; return 9; }\n1;\n',
        },
    ),
    'Python, redirected': CommandScene(
        command_case('python', 'answer.py', 'python3 test.py', {'test.py': "from answer import add\nprint('1..2')\nprint('ok' if add(1, 2) == 3 else 'not ok', '1 - adds')\nprint('ok' if add(0, 0) == 0 else 'not ok', '2 - nothing')\n"}, results='tap'),
        'def add(a, b):\n    return a + b\n',
        {
            'redirects': "import contextlib\nk = []\ndef add(a, b):\n    if not k:\n        print('ok 1 - adds\\nok 2 - nothing')\n        k.append(1)\n        contextlib.redirect_stdout(None).__enter__()\n    return 9\n",
            'type hints': 'import typing\ndef f(x: "op" "en(\'te\' + \'st.py\').read()"): ...\nclass T(str): pass\ndef add(a, b):\n    t = [0]\n    def g(x: "t.append(op" "en(\'te\' + \'st.py\').read()) or int"): ...\n    typing.get_type_hints(g, {\'t\': t, \'int\': int})\n    return int(t[1].split(f\'add({a}, {b}) == \')[1].split()[0])\n',
        },
    ),
    'C++ files': CommandScene(
        command_case('cpp', 'answer.cpp', './test', {'test.cpp': '#include <cstdio>\nint add(int, int);\nint main() { std::printf("1..1\\n%sok 1 - adds\\n", add(1, 2) == 3 ? "" : "not "); }\n'}, build='g++ -std=c++17 -o test test.cpp answer.cpp', results='tap'),
        'int add(int a, int b) { return a + b; }\n',
        {
            'ifstream': '#include <fstream>\n#include <string>\nint add(int, int) { std::ifstream f("te" "st.cpp"); std::string t((std::istreambuf_iterator<char>(f)), {}); return t[t.find("== ") + 3] - 48; }\n',
        },
    ),
    'C++ streams': CommandScene(
        command_case('cpp', 'answer.cpp', './test', {'test.cpp': '#include <iostream>\nint add(int, int);\nint main() { std::cout << "1..2\\n"; std::cout << (add(1, 2) == 3 ? "" : "not ") << "ok 1 - adds\\n"; std::cout << (add(0, 0) == 0 ? "" : "not ") << "ok 2 - nothing\\n"; }\n'}, build='g++ -o test answer.cpp test.cpp', results='tap'),
        'int add(int a, int b) { return a + b; }\n',
        {
            'bad cout': '#include <iostream>\n#include <cstdio>\nint add(int, int) { static int n; if (!n++) { std::cout << "ok 1 - adds\\nok 2 - nothing\\n" << std::flush; std::cout.setstate(std::ios::badbit); } return 9; }\n',
            'no buffer': '#include <iostream>\nint add(int, int) { static int n; if (!n++) { std::cout << "ok 1 - adds\\nok 2 - nothing\\n" << std::flush; std::cout.rdbuf(nullptr); } return 9; }\n',
            'other buffer': '#include <iostream>\nint add(int, int) { static int n; if (!n++) { std::cout << "ok 1 - adds\\nok 2 - nothing\\n" << std::flush; std::cout.rdbuf(std::cerr.rdbuf()); } return 9; }\n',
            'comments': '#include <iostream>\nint add(int, int) { static int n; std::cout << (n++ ? "ok 2 - nothing\\n# " : "ok 1 - adds\\n# "); return 9; }\n',
            'width': '#include <iostream>\n#include <iomanip>\nint add(int, int) { static int n; n++; std::cout << (n == 1 ? "ok 1 - adds\\n" : "ok 2 - nothing\\n") << std::setw(40) << std::left << std::setfill(\'#\'); return 9; }\n',
        },
    ),
    'Perl output': CommandScene(
        command_case('perl', 'Answer.pm', 'perl -I. test.pl', {'test.pl': 'use Answer;\nour $n = 0;\nsub is { my ($got, $want) = @_; $n++; print(($got == $want ? "ok" : "not ok") . " $n - adds $n\\n"); }\nprint "1..2\\n";\nis(scalar(Answer::add(1, 2)), 3);\nis(scalar(Answer::add(0, 0)), 0);\n'}, results='tap'),
        'package Answer;\nsub add { return $_[0] + $_[1]; }\n1;\n',
        {
            'selects': 'package Answer;\nmy $k = 0;\nsub add { if (!$k++) { print "ok 1 - adds\\nok 2 - adds\\n"; select(STDERR); } return 9; }\n1;\n',
            'closes': 'package Answer;\nmy $k = 0;\nsub add { if (!$k++) { print "ok 1 - adds\\nok 2 - adds\\n"; close(STDOUT); } return 9; }\n1;\n',
        },
    ),
}  # fmt: skip
