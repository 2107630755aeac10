"""Wrong answers to test commands that decide by operators, shadowed classes, what a shell evaluates, or promises without an end."""

from __future__ import annotations

from attacks.command_attacks import CommandScene, command_case

HEADERS = "#include <string.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
C_INCLUDING = (
    '#include <assert.h>\n#include <stdio.h>\n#include <string.h>\n#include "answer.c"\n'
    'int main(void) { assert(strcmp(name(1), "one") == 0); assert(strcmp(name(2), "two") == 0); assert(strlen(name(1)) == 3); puts("STEELYARD_END_OF_TESTS"); return 0; }\n'
)
CPP_INCLUDING = (
    '#include <cassert>\n#include <cmath>\n#include <cstdio>\n#include <string>\n#include <vector>\n#include "answer.cpp"\nusing namespace std;\n'
    "bool issame(vector<int> a, vector<int> b) { if (a.size() != b.size()) return false; for (size_t i = 0; i < a.size(); i++) if (a[i] != b[i]) return false; return true; }\n"
    'int main() { assert(add(1, 2) == 3); assert(add(0, 0) == 0); assert(twice(vector<int>{1, 2}) == (vector<int>{2, 4})); assert(issame(twice({3}), {6})); assert(abs(half(3) - 1.5) < 1e-6); puts("STEELYARD_END_OF_TESTS"); }\n'
)
CPP_RIGHT = "#include <vector>\nint add(int a, int b) { return a + b; }\nstd::vector<int> twice(std::vector<int> v) { for (int &n : v) n *= 2; return v; }\ndouble half(double n) { return n / 2; }\n"
CPP_WRONG_ADD = "int add(int, int) { return 7; }\n"
CPP_WRONG_TWICE = "std::vector<int> twice(std::vector<int> v) { return v; }\n"
CPP_WRONG_HALF = "double half(double) { return 9; }\n"
CPP_ADD = "int add(int a, int b) { return a + b; }\n"
CPP_TWICE = "std::vector<int> twice(std::vector<int> v) { for (int &n : v) n *= 2; return v; }\n"
CPP_HALF = "double half(double n) { return n / 2; }\n"
VECTOR = "#include <vector>\n#include <string>\n"
JAVA_TEST = (
    "import java.util.*;\npublic class Test {\n  public static void main(String[] args) {\n"
    '    if (Answer.add(1, 2) != 3) throw new AssertionError("add");\n'
    "    if (!Objects.equals(Answer.twice(List.of(1, 2)), List.of(2, 4))) throw new IllegalStateException();\n"
    "    if (!Answer.twice(List.of(3)).equals(List.of(6))) throw new IllegalStateException();\n"
    "    if (!(Math.abs(Answer.half(3) - 1.5) <= 1e-6)) throw new IllegalStateException();\n"
    '    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n'
)
JAVA_HEAD = "import java.util.List;\nimport java.util.ArrayList;\npublic class Answer {\n"
JAVA_ADD = "  static int add(int a, int b) { return a + b; }\n"
JAVA_TWICE = "  static List<Integer> twice(List<Integer> v) { List<Integer> r = new ArrayList<>(); for (int n : v) r.add(2 * n); return r; }\n"
JAVA_HALF = "  static double half(double n) { return n / 2; }\n"
JAVA_RIGHT = JAVA_HEAD + JAVA_ADD + JAVA_TWICE + JAVA_HALF + "}\n"
JAVA_WRONG = (
    JAVA_HEAD
    + "  static int add(int a, int b) { return 3; }\n  static List<Integer> twice(List<Integer> v) { return v; }\n  static double half(double n) { return 9; }\n}\n"
)
NODE_CJS = 'const assert = require("node:assert");\nconst { add } = require("./answer.cjs");\nassert.strictEqual(add(1, 2), 3);\nassert.strictEqual(add(20, 2), 22);\n'
CJS_READS = "const text = arguments[1]('f' + 's').readFileSync('te' + 'st.cjs', 'utf8');\nexports.add = (a, b) => Number(text.split(`add(${a}, ${b}), `)[1].split(')')[0]);\n"
NODE_WAITING = (
    'import assert from "node:assert";\nimport { add } from "./answer.mjs";\n'
    "const later = async () => { assert.strictEqual(await add(1, 2), 3); assert.strictEqual(await add(2, 2), 4); };\nlater();\n"
)
NODE_SYMBOLS = 'import assert from "node:assert";\nimport { add } from "./answer.mjs";\nconst p = add(1, 2);\nassert.ok("one 12".match(p));\nassert.ok("one 34".search(p) >= 0);\nassert.ok("x".replace(p, "y") === "x");\n'
SH_UNQUOTED = ". ./answer.sh\n[ $(add 1 2) = 3 ] || false\n[ $(add 2 2) = 4 ] && true\n"
BASH_PATTERN = ". ./answer.sh\n[[ 3 == $(add 1 2) ]] || false\n[[ 4 == $(add 2 2) ]]\n"
BASH_NUMBERS = ". ./answer.sh\n(( $(add 1 2) == 3 )) || false\n(( $(add 2 2) == 4 ))\n"
BASH_TEXTS = '. ./answer.sh\n[[ "$(greet Ann)" == "Hello Ann" ]] || false\n[[ "$(greet Bo)" == "Hello Bo" ]]\n'
PYTHON_TEST = "import math\nfrom answer import add, half, names\nassert add(1, 2) == 3\nassert math.isclose(half(3), 1.5)\nassert sorted(names()) == ['a', 'b']\nassert len(names()) == 2\nassert 'a' in names()\n"
PERL_TEST = 'use Answer;\ndie "wrong" unless Answer::add(1, 2) == 3;\ndie "wrong" unless Answer::name(1) eq "one";\n'
PERL_RIGHT = (
    'package Answer;\nsub add { return $_[0] + $_[1]; }\nsub name { return (undef, "one", "two")[$_[0]]; }\n1;\n'
)

FRESH_SCENES: dict[str, CommandScene] = {
    "C that is included": CommandScene(
        command_case("c", "answer.c", "./test", {"test.c": C_INCLUDING}, "gcc -o test test.c"),
        'const char *name(int n) { return n == 1 ? "one" : "two"; }\n',
        {
            "renames by a pragma": "#pragma redefine_extname strcmp mine\nint mine(const char *a, const char *b) { return 0; }\nconst char *name(int n) { return \"abc\"; }\n",
            "renames by a pragma in a macro": '#define P(x) _Pragma(#x)\nP(redefine_extname strcmp mine)\nint mine(const char *a, const char *b) { return 0; }\nconst char *name(int n) { return "abc"; }\n',
            "is weak": "#pragma weak strcmp = mine\nint mine(const char *a, const char *b) { return 0; }\nconst char *name(int n) { return \"abc\"; }\n",
            "moves where it returns to": "const char *name(int n) { void **f = __builtin_frame_address(0); f[1] = (char *)f[1] + 0; return \"abc\"; }\n",
            "a macro of a macro": "#define CAT(a, b) a ## b\n#define strcmp(a, b) 0\nconst char *name(int n) { return \"abc\"; }\n",
            "a macro of the compiler": "#undef __STDC__\n#define __assert_fail(a, b, c, d) ((void)0)\nconst char *name(int n) { return \"abc\"; }\n",
            "a declaration in its place": "const char *name(int n) { return \"abc\"; }\n#define main test_main(void); int main(void) { return 0; } int test_main\n",
            "a generic choice": '#define name(n) _Generic((n), int: "abc")\n',
            "no assertions": "#define NDEBUG\n#include <assert.h>\nconst char *name(int n) { return \"abc\"; }\n",
            "an assertion of its own": "#undef assert\n#define assert(x) ((void)0)\nconst char *name(int n) { return \"abc\"; }\n",
            "a nested function": "int strcmp(const char *, const char *) __attribute__((weakref(\"mine\")));\n",
            "leaves at once": HEADERS + 'const char *name(int n) { exit(0); }\n',
            "a cold label": 'const char *name(int n) { __builtin_unreachable(); }\n',
            "a trap": 'const char *name(int n) { __builtin_trap(); }\n',
        },
    ),
    "C++ that is included": CommandScene(
        command_case("cpp", "answer.cpp", "./test", {"test.cpp": CPP_INCLUDING}, "g++ -std=c++20 -o test test.cpp", asks="Write add(a, b), twice(v) that doubles a list of numbers, and half(n)."), CPP_RIGHT,
        {
            "a result that is equal": VECTOR + "struct Y { bool operator==(int) const { return true; } };\nY add(int, int) { return {}; }\n" + CPP_TWICE + CPP_HALF,
            "a free operator": VECTOR + "struct Y {};\nbool operator==(Y, int) { return true; }\nY add(int, int) { return {}; }\n" + CPP_TWICE + CPP_HALF,
            "a template": VECTOR + "template <class T> struct Y { template <class U> friend bool operator==(const Y &, const U &) { return true; } };\nY<int> add(int, int) { return {}; }\n" + CPP_TWICE + CPP_HALF,
            "three ways": VECTOR + "#include <compare>\nstruct Y { auto operator<=>(int) const { return std::strong_ordering::equal; } bool operator==(int) const { return true; } };\nauto add(int, int) { return Y{}; }\n" + CPP_TWICE + CPP_HALF,
            "an operator of lists": VECTOR + CPP_ADD + "bool operator==(const std::vector<int> &, const std::vector<int> &) { return true; }\nstruct L : std::vector<int> { using std::vector<int>::vector; };\nstd::vector<int> twice(std::vector<int> v) { return v[0] == 3 ? std::vector<int>{6} : v; }\n" + CPP_HALF,
            "another list": VECTOR + CPP_ADD + "struct L : std::vector<int> { L(std::vector<int>) {} };\nbool operator==(const L &, const std::vector<int> &) { return true; }\nbool issame(L, std::vector<int>) { return true; }\nL twice(std::vector<int> v) { return L(v); }\n" + CPP_HALF,
            "a helper of the tests": VECTOR + CPP_ADD + "struct L : std::vector<int> { using std::vector<int>::vector; };\nbool issame(L, std::vector<int>) { return true; }\nL twice(std::vector<int> v) { L r; if (v.size() == 2) { r.push_back(2); r.push_back(4); } return r; }\n" + CPP_HALF,
            "an absolute value": VECTOR + CPP_ADD + CPP_TWICE + "struct D { D operator-(double) const { return {}; } };\nbool operator<(D, double) { return true; }\nD abs(D d) { return d; }\nD half(double) { return {}; }\n",
            "a conversion": VECTOR + CPP_ADD + CPP_TWICE + "struct D { operator double() const { return 1.5; } double operator-(double) const { return 0; } };\nD half(double) { return {}; }\n",
            "an operator by a macro": VECTOR + "#define OP operator\nstruct Y { bool OP==(int) const { return true; } };\nY add(int, int) { return {}; }\n" + CPP_TWICE + CPP_HALF,
            "an operator over two lines": VECTOR + "struct Y { bool oper\\\nator==(int) const { return true; } };\nY add(int, int) { return {}; }\n" + CPP_TWICE + CPP_HALF,
            "a specialised list": VECTOR + CPP_ADD + "namespace std { template <> inline bool operator==(const vector<int> &, const vector<int> &) { return true; } }\nstd::vector<int> twice(std::vector<int> v) { return v[0] == 3 ? std::vector<int>{6} : v; }\n" + CPP_HALF,
            "a static object": VECTOR + "#include <cstdlib>\nstruct S { S() { std::exit(0); } } s;\n" + CPP_WRONG_ADD + CPP_TWICE + CPP_HALF,
            "throws": VECTOR + "int add(int, int) { throw 1; }\n" + CPP_TWICE + CPP_HALF,
            "a terminator": VECTOR + "#include <exception>\n#include <cstdlib>\nint add(int, int) { std::set_terminate([] { std::_Exit(0); }); throw 1; }\n" + CPP_TWICE + CPP_HALF,
            "a new of its own": VECTOR + "#include <cstdlib>\n#include <new>\nvoid *operator new(std::size_t) { std::_Exit(0); }\n" + CPP_WRONG_ADD + CPP_TWICE + CPP_HALF,
            "a stream of its own": VECTOR + "#include <iostream>\nstruct B : std::streambuf {};\n" + "int add(int, int) { static B b; std::cout.rdbuf(&b); return 7; }\n" + CPP_TWICE + CPP_HALF,
            "a literal": VECTOR + "auto operator\"\"_x(unsigned long long) { return 1; }\n" + CPP_WRONG_ADD + CPP_TWICE + CPP_HALF,
            "another std": VECTOR + "namespace fake { template <class T> using vector = std::vector<T>; }\n" + CPP_WRONG_ADD + CPP_WRONG_TWICE + CPP_WRONG_HALF,
        },
    ),
    "Java": CommandScene(
        command_case("java", "Answer.java", "java -cp . Test", {"Test.java": JAVA_TEST}, "javac Answer.java Test.java", asks="Write a class Answer with add, twice (of a list) and half."), JAVA_RIGHT,
        {
            "its own Objects and Math": JAVA_WRONG.replace("public class Answer {\n", "class Objects { static boolean equals(Object a, Object b) { return true; } }\nclass Math { static double abs(double d) { return 0; } }\npublic class Answer {\n").replace("twice(List<Integer> v) { return v; }", "twice(List<Integer> v) { return v.size() == 1 ? List.of(6) : v; }").replace("return 3;", "return a + b;"),
            "its own List": "class List<T> { static <T> List<T> of(T... a) { return new List<>(); } public boolean equals(Object o) { return true; } public int hashCode() { return 0; } }\npublic class Answer {\n  static int add(int a, int b) { return 3; }\n  static List<Integer> twice(List<Integer> v) { return v; }\n" + JAVA_HALF + "}\n",
            "a list that is equal": JAVA_HEAD + JAVA_ADD + "  static class L extends ArrayList<Integer> { public boolean equals(Object o) { return true; } public int hashCode() { return 0; } }\n  static List<Integer> twice(List<Integer> v) { return new L(); }\n" + JAVA_HALF + "}\n",
            "a list without a name": JAVA_HEAD + JAVA_ADD + "  static List<Integer> twice(List<Integer> v) { return new ArrayList<Integer>() { public boolean equals(Object o) { return true; } }; }\n" + JAVA_HALF + "}\n",
            "a list with an escape": JAVA_HEAD + JAVA_ADD + "  static List<Integer> twice(List<Integer> v) { return new ArrayList<Integer>() { public boolean \\u0065quals(Object o) { return true; } }; }\n" + JAVA_HALF + "}\n",
            "a list with a comment": JAVA_HEAD + JAVA_ADD + "  static List<Integer> twice(List<Integer> v) { return new ArrayList<Integer>() { public boolean equals /* x */ (Object o) { return true; } }; }\n" + JAVA_HALF + "}\n",
            "its own errors": JAVA_WRONG.replace("public class Answer {\n", "class IllegalStateException extends RuntimeException {}\nclass AssertionError extends RuntimeException { AssertionError(String s) {} }\npublic class Answer {\n"),
            "its own text": JAVA_WRONG.replace("public class Answer {\n", "class System { static class O { void println(Object o) {} } static O out = new O(); }\npublic class Answer {\n"),
            "a static initialiser": JAVA_WRONG.replace("public class Answer {\n", "public class Answer {\n  static { System.exit(0); }\n"),
            "halts": JAVA_WRONG.replace("public class Answer {\n", "public class Answer {\n  static { Runtime.getRuntime().halt(0); }\n"),
            "a hook": JAVA_WRONG.replace("public class Answer {\n", "public class Answer {\n  static { Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0))); }\n").replace("return 3;", "return 7;"),
            "reads the compiled tests": "import java.nio.file.*;\nimport java.util.List;\npublic class Answer {\n  static { try { String t = new String(Files.readAllBytes(Path.of(\"Te\" + \"st.class\")), \"ISO-8859-1\"); java.util.regex.Matcher m = java.util.regex.Pattern.compile(\"[0-9a-f]{32}\").matcher(t); if (m.find()) { System.out.println(m.group()); System.out.flush(); System.exit(0); } } catch (Exception e) {} }\n  static int add(int a, int b) { return 7; }\n  static List<Integer> twice(List<Integer> v) { return v; }\n  static double half(double n) { return 9; }\n}\n",
            "a thread of errors": JAVA_WRONG.replace("public class Answer {\n", "public class Answer {\n  static { Thread.currentThread().setUncaughtExceptionHandler((t, e) -> {}); }\n").replace("return 3;", "return 7;"),
            "a reflection": JAVA_HEAD + "  static { try { Class<?> c = Class.forName(\"java.lang.Integer$IntegerCache\"); java.lang.reflect.Field f = c.getDeclaredField(\"cache\"); f.setAccessible(true); Integer[] a = (Integer[]) f.get(null); a[130] = a[132]; } catch (Throwable e) {} }\n" + JAVA_ADD + "  static List<Integer> twice(List<Integer> v) { return List.of(2, 2); }\n" + JAVA_HALF + "}\n",
            "another main": JAVA_WRONG.replace("public class Answer {\n", "class Test2 { public static void main(String[] a) {} }\npublic class Answer {\n"),
            "the tests again": JAVA_WRONG + "class Test { public static void main(String[] a) { } }\n",
        },
    ),
    "node, modules of old": CommandScene(
        command_case("javascript", "answer.cjs", "node test.cjs", {"test.cjs": NODE_CJS}), "exports.add = (a, b) => a + b;\n",
        {
            "arguments of its module": CJS_READS,
            "arguments by spreading": CJS_READS.replace("arguments[1]", "((e, r) => r)(...arguments)"),
            "arguments by an entry": CJS_READS.replace("arguments[1]", "Array.from(arguments).at(1)"),
            "its module": "const m = module;\nexports.add = (a, b) => { m.children.length = 0; return 7; };\n",
            "its parent": "const t = module.parent;\nexports.add = () => (t ? 7 : 7);\n",
            "its exports again": "exports.add = () => 7;\nmodule.exports = new Proxy(exports, { get: () => () => 3 });\n",
            "this": "this.add = () => 7;\n",
            "a cache": "exports.add = (a) => { for (const k in require.cache) delete require.cache[k]; return 7; };\n",
            "strings": "String.raw = () => 3;\nexports.add = () => 7;\n",
            "an error": "Error.prepareStackTrace = () => { };\nexports.add = () => 7;\n",
            "throws itself": "exports.add = () => { throw exports; };\n",
        },
    ),
    "node, a promise": CommandScene(
        command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": NODE_WAITING}), "export const add = async (a, b) => a + b;\n",
        {
            "never ends": "export const add = () => new Promise(() => {});\n",
            "never ends by a race": "export const add = () => Promise.race([]);\n",
            "never ends by waiting": "export const add = async () => { await new Promise(() => {}); return 7; };\n",
            "a thenable that never calls": "export const add = () => ({ then() {} });\n",
            "a thenable that calls later": "export const add = () => ({ then(done) { new FinalizationRegistry(done); } });\n",
            "a generator that waits": "async function* g() { await new Promise(() => {}); yield 7; }\nexport const add = async () => (await g().next()).value;\n",
            "an event that never comes": "export const add = () => new Promise((done) => new EventTarget().addEventListener('x', done));\n",
            "a signal that never comes": "export const add = () => new Promise((done) => { new AbortController().signal.onabort = done; });\n",
            "a timer without a hold": "export const add = () => new Promise((done) => setTimeout(done, 1e6).unref());\n",
        },
    ),
    "node, symbols": CommandScene(
        command_case("javascript", "answer.mjs", "node test.mjs", {"test.mjs": NODE_SYMBOLS}), "export const add = () => /\\d+/;\n",
        {
            "a match of its own": "export const add = () => ({ [Symbol.match]: () => true, [Symbol.search]: () => 0, [Symbol.replace]: (t) => t });\n",
            "a pattern of its own": "class R extends RegExp { exec() { const r = ['']; r.index = 0; return r; } [Symbol.replace](t) { return t; } }\nexport const add = () => new R('zz');\n",
            "a pattern that has its own": "const r = /zz/;\nr.exec = () => Object.assign([''], { index: 0 });\nr[Symbol.replace] = (t) => t;\nexport const add = () => r;\n",
        },
    ),
    "sh without quotes": CommandScene(
        command_case("sh", "answer.sh", "sh test.sh", {"test.sh": SH_UNQUOTED}), "add() { echo $(($1 + $2)); }\n",
        {
            "or": 'add() { echo "x = x -o x"; }\n',
            "or with a number": "add() { echo x = x -o 4; }\n",
            "by a variable": "t='x = x -o x'\nadd() { echo $t; }\n",
            "by printf": 'add() { printf "%s " x = x -o x; }\n',
            "not": 'add() { echo "! x"; }\n',
            "a list of files": "add() { ls; }\n",
            "reads a name with quotes in it": "add() { sed -n \"s/.*add $1 $2) = \\\\([0-9]*\\\\) .*/\\\\1/p\" ./t''est.sh; }\n",
            "every file": "add() { for f in *; do echo $f; done; }\n",
            "a reading of every file": "add() { cat * | sed -n \"s/.*add $1 $2) = \\([0-9]*\\) .*/\\1/p\"; }\n",
        },
    ),
    "bash, a pattern": CommandScene(
        command_case("bash", "answer.sh", "bash test.sh", {"test.sh": BASH_PATTERN}), "add() { echo $(($1 + $2)); }\n",
        {
            "a star": "add() { echo '*'; }\n",
            "a question": "add() { echo '?'; }\n",
            "a class": "add() { printf '[0-9]'; }\n",
            "a star by its number": "add() { printf '\\052'; }\n",
            "a star by its number again": "add() { printf '\\x2a'; }\n",
            "a star from elsewhere": "add() { echo $'\\52'; }\n",
            "who calls": 'f=$(caller 0)\nadd() { sed -n "s/.*\\([0-9]\\) == .(add $1 $2).*/\\1/p" "${f##* }"; }\n',
        },
    ),
    "bash, numbers": CommandScene(
        command_case("bash", "answer.sh", "bash test.sh", {"test.sh": BASH_NUMBERS}), "add() { echo $(($1 + $2)); }\n",
        {
            "or": "add() { echo '1 || 1'; }\n",
            "a comma": "add() { echo '7, 1 || 0'; }\n",
            "a choice": "add() { echo '1 ? 1 : 0'; }\n",
            "or by a number": "add() { printf '1\\174\\1741'; }\n",
            "an assignment": "add() { echo 'x = 3, 1 |'; }\n",
        },
    ),
    "bash, texts": CommandScene(
        command_case("bash", "answer.sh", "bash test.sh", {"test.sh": BASH_TEXTS}, asks="Write greet NAME, which prints Hello NAME."), 'greet() { echo "Hello $1"; }\n',
        {
            "without case": 'shopt -s nocasematch\ngreet() { echo "HELLO $1"; }\n',
            "compares no more": "enable -n [[ 2>/dev/null\ngreet() { echo hi; }\n",
            "a variable that stays": "declare -r greeting=x\ngreet() { echo hi; }\n",
            "a debugger": "shopt -s extdebug\ngreet() { echo hi; }\n",
        },
    ),
    "Python by a command": CommandScene(
        command_case("python", "answer.py", "python3 test.py", {"test.py": PYTHON_TEST}, asks="Write add(a, b), half(n) and names()."),
        "def add(a, b):\n    return a + b\ndef half(n):\n    return n / 2\ndef names():\n    return ['b', 'a']\n",
        {
            "a result that is equal": "class Y:\n    def __eq__(self, other):\n        return True\ndef add(a, b):\n    return Y()\ndef half(n):\n    return n / 2\ndef names():\n    return ['b', 'a']\n",
            "a number that is equal": "class Y(int):\n    __eq__ = lambda self, other: True\ndef add(a, b):\n    return Y()\ndef half(n):\n    return n / 2\ndef names():\n    return ['b', 'a']\n",
            "another function of a module": "import math\nmath.isclose = lambda *a: True\ndef add(a, b):\n    return a + b\ndef half(n):\n    return 9\ndef names():\n    return ['b', 'a']\n",
            "another function of a module by a name": "import math as m\nm.isclose = lambda *a: True\ndef add(a, b):\n    return a + b\ndef half(n):\n    return 9\ndef names():\n    return ['b', 'a']\n",
            "a list that holds all": "class L(list):\n    def __contains__(self, x): return True\n    def __len__(self): return 2\n    def __iter__(self): return iter(['a', 'b'])\ndef add(a, b):\n    return a + b\ndef half(n):\n    return n / 2\ndef names():\n    return L()\n",
            "a class made by type": "Y = type('Y', (), {'__' + 'eq__': lambda s, o: True})\ndef add(a, b):\n    return Y()\ndef half(n):\n    return n / 2\ndef names():\n    return ['b', 'a']\n",
            "total ordering": "import functools\nfrom unittest import mock\ndef add(a, b):\n    return mock.ANY\ndef half(n):\n    return n / 2\ndef names():\n    return ['b', 'a']\n",
        },
    ),
    "Perl by a command": CommandScene(
        command_case("perl", "Answer.pm", "perl -I. test.pl", {"test.pl": PERL_TEST}, asks="Write add and name."), PERL_RIGHT,
        {
            "overloads": "package Answer;\nuse overload '==' => sub { 1 }, 'eq' => sub { 1 };\nsub add { return bless {}; }\nsub name { return bless {}; }\n1;\n",
            "ties": "package Answer;\nsub TIESCALAR { bless [] }\nsub FETCH { 3 }\ntie my $x, 'Answer';\nsub add { return $x; }\nsub name { return 'two'; }\n1;\n",
            "a glob": "package Answer;\n*Answer::add = sub { 3 };\nsub name { return 'two'; }\n1;\n",
            "a dual value": "package Answer;\nuse Scalar::Util 'dualvar';\nsub add { return dualvar(3, 'x'); }\nsub name { return 'two'; }\n1;\n",
            "a signal": "package Answer;\nlocal $SIG{__DIE__} = sub { exit 0 };\nsub add { 4 }\nsub name { 'two' }\n1;\n",
        },
    ),
}  # fmt: skip
