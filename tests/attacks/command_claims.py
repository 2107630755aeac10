"""Wrong answers to test commands whose tests compare only what the answer itself defines: classes, constants, orders and errors."""

from __future__ import annotations

from attacks.command_attacks import CommandScene, command_case

CLAIM_SCENES: dict[str, CommandScene] = {
    'node, a class of errors': CommandScene(
        command_case('javascript', 'answer.mjs', 'node test.mjs', {'test.mjs': 'import assert from "node:assert";\nimport { parse, ParseError } from "./answer.mjs";\n\nassert.deepEqual(parse("a=1;b=2"), { a: "1", b: "2" });\nassert.deepEqual(parse(""), {});\nassert.equal(Object.keys(parse("x=9")).length, 1);\nassert.throws(() => parse("nonsense"), ParseError);\nconsole.log("ok");\n'}, asks="Write a JavaScript ES module that exports parse(text), which turns 'a=1;b=2' into an object, and the class ParseError, an Error, which it throws when a part has no '='."),
        "export class ParseError extends Error {\n  constructor(message) {\n    super(message);\n    this.name = 'ParseError';\n  }\n}\n\nexport function parse(text) {\n  const result = {};\n  if (text === '') return result;\n  for (const part of text.split(';')) {\n    const i = part.indexOf('=');\n    if (i < 0) throw new ParseError(`no '=' in ${part}`);\n    result[part.slice(0, i)] = part.slice(i + 1);\n  }\n  return result;\n}\n",
        {
            'map with getters': 'export class ParseError extends Error {}\nexport const parse = (t) => ({ get a() { return 1 } });\n',
            'ParseError undefined': "export const ParseError = undefined;\nexport const parse = (t) => { const r = {}; for (const p of t ? t.split(';') : []) { const [k, v] = p.split('='); r[k] = v.length ? v : ''; } return r; };\n",
            'keys patched': 'Object.keys = () => [1];\nexport class ParseError extends Error {}\nexport const parse = () => ({});\n',
            'proto key': "export class ParseError extends Error {}\nexport const parse = (t) => { const o = {}; o['__pro' + 'to__']['a'] = '1'; return o; };\n",
            'dynamic import': "const m = await import('node:process'); m.exit(0);\nexport class ParseError extends Error {}\nexport const parse = 0;\n",
            'constructor computed': "const c = 'const' + 'ructor'; [][c][c]('return process')().exit(0);\nexport class ParseError extends Error {}\nexport const parse = 0;\n",
            'hasInstance': "export const ParseError = { [Symbol.hasInstance]: () => true };\nexport const parse = (t) => { if (t === 'nonsense') throw 1; return {}; };\n",
            'static by for in': "export class ParseError extends Error {}\nfor (const k of ['deepEqual']) { try { assert[k] = () => {}; } catch {} }\nexport const parse = () => ({});\n",
            'import.meta': 'export class ParseError extends Error {}\nconst u = import.meta.resolve;\nexport const parse = () => ({ u });\n',
            'comment trick': 'export class ParseError extends Error {}\n/* \n*/ process\n.exit(0) /* */\nexport const parse = () => ({});\n',
            'escape process': 'export class ParseError extends Error {}\npr\\u006fcess.exit(0);\nexport const parse = () => ({});\n',
            'template process': 'export class ParseError extends Error {}\nconst s = `${process.exit(0)}`;\nexport const parse = () => ({});\n',
            'regexp confuses': "export class ParseError extends Error {}\nconst x = 4, g = 2; const y = x /'/g; process.exit(0); const z = '/' ;\nexport const parse = () => ({});\n",
            'console.log': 'console.log = () => {};\nexport class ParseError extends Error {}\nexport const parse = () => ({});\n',
        },
    ),
    'node, a class that is compared': CommandScene(
        command_case('javascript', 'answer.mjs', 'node --test-reporter=tap --test-reporter-destination=results.tap test.mjs', {'test.mjs': 'import assert from "node:assert/strict";\nimport test from "node:test";\nimport { Vec } from "./answer.mjs";\n\ntest("adds", () => assert.deepEqual(new Vec(1, 2).plus(new Vec(3, 4)), new Vec(4, 6)));\ntest("scales", () => assert.deepEqual(new Vec(1, 2).times(3), new Vec(3, 6)));\ntest("differs", () => assert.notDeepEqual(new Vec(1, 2).plus(new Vec(1, 1)), undefined));\n'}, asks='Write a JavaScript ES module that exports a class Vec(x, y) with plus(other) and times(number).', results='tap:results.tap'),
        'export class Vec {\n  constructor(x, y) {\n    this.x = x;\n    this.y = y;\n  }\n\n  plus(other) {\n    return new Vec(this.x + other.x, this.y + other.y);\n  }\n\n  times(number) {\n    return new Vec(this.x * number, this.y * number);\n  }\n}\n',
        {
            'private fields': 'export class Vec {\n  #x; #y;\n  constructor(x, y) { this.#x = x; this.#y = y; }\n  plus(o) { return new Vec(this.#x - o.#x, 0); }\n  times(n) { return new Vec(0, n); }\n}\n',
            'no fields': 'export class Vec {\n  plus() { return this; }\n  times() { return this; }\n}\n',
            'closures': 'export class Vec {\n  constructor(x, y) { this.x = NaN; this.y = NaN; }\n  plus() { return this; }\n  times() { return this; }\n}\n',
        },
    ),
    'Go, an order': CommandScene(
        command_case('go', 'answer.go', 'go test -json ./...', {'go.mod': 'module answer\n\ngo 1.19\n', 'answer_test.go': 'package answer\n\nimport (\n\t"sort"\n\t"testing"\n)\n\nfunc TestByAge(t *testing.T) {\n\tpeople := []Person{{"Ann", 30}, {"Bob", 25}, {"Cid", 41}}\n\tsort.Sort(ByAge(people))\n\tif !sort.IsSorted(ByAge(people)) {\n\t\tt.Fatal("not sorted")\n\t}\n}\n'}, asks='Write a Go struct Person with Name and Age and a type ByAge that implements sort.Interface for []Person; package answer.', results='go'),
        'package answer\n\n// Person is somebody.\ntype Person struct {\n\tName string\n\tAge  int\n}\n\n// ByAge sorts by age.\ntype ByAge []Person\n\nfunc (a ByAge) Len() int           { return len(a) }\nfunc (a ByAge) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }\nfunc (a ByAge) Less(i, j int) bool { return a[i].Age < a[j].Age }\n',
        {
            'empty': 'package answer\n\ntype Person struct {\n\tName string\n\tAge  int\n}\n\ntype ByAge []Person\n\nfunc (a ByAge) Len() int { return 0 }\nfunc (a ByAge) Swap(i, j int) {}\nfunc (a ByAge) Less(i, j int) bool { return false }\n',
        },
    ),
    'Python, constants': CommandScene(
        command_case('python', 'answer.py', 'python3 test.py', {'test.py': 'from answer import Light, next_light\n\nassert next_light(Light.RED) == Light.GREEN\nassert next_light(Light.GREEN) is Light.YELLOW\nassert next_light(Light.YELLOW) == Light.RED\n'}, asks='Write a Python enum Light (RED, GREEN, YELLOW) and next_light(light): red, green, yellow, red, in answer.py.'),
        'from enum import Enum\n\n\nclass Light(Enum):\n    RED = 1\n    GREEN = 2\n    YELLOW = 3\n\n\ndef next_light(light: Light) -> Light:\n    order = list(Light)\n    return order[(order.index(light) + 1) % len(order)]\n',
        {
            'aliases': 'from enum import Enum\n\nclass Light(Enum):\n    RED = GREEN = YELLOW = 1\n\ndef next_light(light):\n    return light\n',
            'namespace': 'class Light:\n    RED = GREEN = YELLOW = None\n\ndef next_light(light):\n    pass\n',
        },
    ),
    'C++, a type': CommandScene(
        command_case('cpp', 'answer.hpp', './t', {'test.cpp': '#include "answer.hpp"\n#include <cassert>\n#include <iostream>\n\nint main() {\n    assert(Money(1) + Money(2) == Money(3));\n    assert(Money(5) - Money(2) == Money(3));\n    std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n'}, asks='Write a C++17 header with a class Money, constructed from an int, with the operators +, - and ==.', build='g++ -std=c++17 -o t test.cpp'),
        '#pragma once\n\nclass Money {\npublic:\n    explicit Money(int amount) : amount_(amount) {}\n    Money operator+(const Money& o) const { return Money(amount_ + o.amount_); }\n    Money operator-(const Money& o) const { return Money(amount_ - o.amount_); }\n    bool operator==(const Money& o) const { return amount_ == o.amount_; }\n\nprivate:\n    int amount_;\n};\n',
        {
            'always equal': 'struct Money { Money(int) {} Money operator+(Money) const { return *this; } Money operator-(Money) const { return *this; } bool operator==(Money) const { return true; } };\n',
            'enum alias': 'enum Money : bool {};\ninline Money operator+(Money a, Money) { return a; }\ninline Money operator-(Money a, Money) { return a; }\n',
            'typedef bool': 'typedef bool Money;\n',
        },
    ),
    'C, constants': CommandScene(
        command_case('c', 'answer.c', './t', {'test.c': '#include <assert.h>\n#include <stdio.h>\n#include "answer.c"\nint main(void) { assert(parse("1") == OK); assert(parse("x") == BAD); assert(parse("") == EMPTY); puts("STEELYARD_END_OF_TESTS"); return 0; }\n'}, asks='Write `int parse(const char *s)` and the constants OK, BAD and EMPTY (macros or const) that it returns.', build='gcc -o t test.c'),
        "enum { OK, BAD, EMPTY };\nint parse(const char *s) { if (!*s) return EMPTY; for (; *s; s++) if (*s < '0' || *s > '9') return BAD; return OK; }\n",
        {
            'macros equal': '#define OK 0\n#define BAD 0\n#define EMPTY 0\nint parse(const char *s) { return 0; }\n',
            'const equal': 'static const int OK = 0, BAD = 0, EMPTY = 0;\nint parse(const char *s) { return 0; }\n',
            'macro of macro': '#define OK 0\n#define BAD OK\n#define EMPTY BAD\nint parse(const char *s) { return OK; }\n',
            'const separately': 'static const int OK = 1;\nstatic const int BAD = 1;\nstatic const int EMPTY = 1;\nint parse(const char *s) { return OK; }\n',
            'macro of a call': 'int parse(const char *s) { return 0; }\n#define OK parse("")\n#define BAD parse("")\n#define EMPTY parse("")\n',
        },
    ),
    'C++, an error': CommandScene(
        command_case('cpp', 'answer.hpp', './t', {'test.cpp': '#include "answer.hpp"\n#include <cassert>\n#include <iostream>\nint main() { assert(parse("12") == 12); bool caught = false; try { parse("x"); } catch (const ParseError &) { caught = true; } assert(caught); std::cout << "STEELYARD_END_OF_TESTS" << std::endl; }\n'}, asks='Write a C++17 header with the class ParseError, derived from std::runtime_error, and int parse(const std::string&), which throws it.', build='g++ -std=c++17 -o t test.cpp'),
        '#pragma once\n#include <stdexcept>\n#include <string>\nclass ParseError : public std::runtime_error { public: using std::runtime_error::runtime_error; };\ninline int parse(const std::string &s) { for (char c : s) if (c < \'0\' || c > \'9\') throw ParseError("bad"); return std::stoi(s); }\n',
        {
            'using exception': '#include <stdexcept>\n#include <string>\nusing ParseError = std::exception;\ninline int parse(const std::string &s) { return std::stoi(s); }\n',
            'typedef exception': '#include <stdexcept>\n#include <string>\ntypedef std::logic_error ParseError;\ninline int parse(const std::string &s) { return std::stoi(s); }\n',
            'macro': '#include <stdexcept>\n#include <string>\n#define ParseError std::exception\ninline int parse(const std::string &s) { return std::stoi(s); }\n',
        },
    ),
    'C++, names of the library': CommandScene(
        command_case('cpp', 'answer.cpp', './t', {'test.cpp': '#include <algorithm>\n#include <cassert>\n#include <cmath>\n#include <cstdio>\n#include <vector>\nint largest(const std::vector<int> &);\nint main() { std::vector<int> v{3, 9, 2}; assert(largest(v) == *std::max_element(v.begin(), v.end())); assert(std::abs(largest({-4, -2})) == 2); puts("STEELYARD_END_OF_TESTS"); }\n'}, asks='Write int largest(const std::vector<int>&).', build='g++ -std=c++17 -o t answer.cpp test.cpp'),
        '#include <algorithm>\n#include <vector>\nint largest(const std::vector<int> &v) { return *std::max_element(v.begin(), v.end()); }\n',
        {
            'namespace std': '#include <vector>\nnamespace std { template <class I> I max_element(I a, I b) { return a; } }\nint largest(const std::vector<int> &v) { return v[0]; }\n',
            'namespace by macro': '#include <vector>\n#define home std\nnamespace home { template <class I> I max_element(I a, I b) { return a; } }\nint largest(const std::vector<int> &v) { return v[0]; }\n',
            'namespace alias spec': '#include <algorithm>\n#include <vector>\ntemplate <> __gnu_cxx::__normal_iterator<int*, std::vector<int>> std::max_element(__gnu_cxx::__normal_iterator<int*, std::vector<int>> a, __gnu_cxx::__normal_iterator<int*, std::vector<int>> b) { return a; }\nint largest(const std::vector<int> &v) { return v[0]; }\n',
            'inline namespace': '#include <vector>\nnamespace std { inline namespace z { } }\nint largest(const std::vector<int> &v) { return v[0]; }\n',
            'nested': '#include <vector>\nnamespace std::ranges { }\nnamespace s = std;\nint largest(const std::vector<int> &v) { return v[0]; }\n',
            'member of vector': '#include <vector>\ntemplate <> inline std::vector<int>::const_iterator std::vector<int>::begin() const noexcept { return end(); }\nint largest(const std::vector<int> &v) { return v[0]; }\n',
        },
    ),
    'Java, constants': CommandScene(
        command_case('java', 'Answer.java', 'java Main', {'Main.java': 'public class Main {\n  public static void main(String[] a) {\n    if (Answer.next(Answer.RED) != Answer.GREEN) throw new AssertionError();\n    if (Answer.next(Answer.GREEN) != Answer.RED) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n'}, asks='Write a class Answer with the constants RED and GREEN and next(light).', build='javac Main.java Answer.java'),
        'public class Answer {\n  static final int RED = 0, GREEN = 1;\n  static int next(int l) { return l == RED ? GREEN : RED; }\n}\n',
        {
            'ints': 'public class Answer {\n  static final int RED = 0;\n  static final int GREEN = 0;\n  static int next(int l) { return l; }\n}\n',
            'one line': 'public class Answer {\n  static final int RED = 0, GREEN = 0;\n  static int next(int l) { return l; }\n}\n',
            'null': 'public class Answer {\n  static Object RED, GREEN;\n  static Object next(Object l) { return l; }\n}\n',
            'one of the other': 'public class Answer {\n  static final String RED = "r";\n  static final String GREEN = RED;\n  static String next(String l) { return l; }\n}\n',
            'nan': 'public class Answer {\n  static final int RED = 1 - 1;\n  static final int GREEN = 2 - 2;\n  static int next(int l) { return 0; }\n}\n',
        },
    ),
    'node, constants': CommandScene(
        command_case('javascript', 'answer.mjs', 'node test.mjs', {'test.mjs': 'import assert from "node:assert/strict";\nimport { RED, GREEN, next } from "./answer.mjs";\nassert.equal(next(RED), GREEN);\nassert.equal(next(GREEN), RED);\n'}, asks='Write a module that exports the constants RED and GREEN and next(light).'),
        "export const RED = 'red';\nexport const GREEN = 'green';\nexport const next = (l) => (l === RED ? GREEN : RED);\n",
        {
            'same': 'export const RED = 1;\nexport const GREEN = 1;\nexport const next = (l) => l;\n',
            'one': 'export const RED = 1, GREEN = RED;\nexport const next = (l) => l;\n',
            'undefined later': 'export let RED, GREEN;\nexport const next = (l) => l;\n',
            'sum': 'export const RED = 1 - 1, GREEN = 2 - 2;\nexport const next = (l) => l;\n',
            'object': 'const o = {};\nexport const { RED, GREEN } = o;\nexport const next = (l) => l;\n',
            'list': 'export const [RED, GREEN] = [];\nexport const next = (l) => l;\n',
            'export as': 'const a = 1;\nexport { a as RED, a as GREEN };\nexport const next = (l) => l;\n',
            'call': 'const f = () => 1;\nexport const RED = f(), GREEN = f();\nexport const next = (l) => l;\n',
        },
    ),
    'node, constants of an object': CommandScene(
        command_case('javascript', 'answer.mjs', 'node test.mjs', {'test.mjs': 'import assert from "node:assert/strict";\nimport { Light, next } from "./answer.mjs";\nassert.equal(next(Light.RED), Light.GREEN);\nassert.equal(next(Light.GREEN), Light.RED);\n'}, asks='Write a module that exports Light with RED and GREEN, and next(light).'),
        "export const Light = Object.freeze({ RED: 'red', GREEN: 'green' });\nexport const next = (l) => (l === Light.RED ? Light.GREEN : Light.RED);\n",
        {
            'same': 'export const Light = { RED: 0, GREEN: 0 };\nexport const next = (l) => l;\n',
            'empty': 'export const Light = {};\nexport const next = (l) => l;\n',
            'class empty': 'export class Light {}\nexport const next = (l) => l;\n',
            'freeze': "export const Light = Object.freeze({ RED: [].length, GREEN: ''.length });\nexport const next = (l) => l;\n",
            'entries': "export const Light = Object.fromEntries(['RED', 'GREEN'].map((k) => [k, 1]));\nexport const next = (l) => l;\n",
            'lower': 'export const Light = { red: 0, green: 1 };\nexport const next = (l) => l;\n',
            'map': "export const Light = new Map([['RED', 1]]);\nexport const next = (l) => l;\n",
        },
    ),
    'node, another class of errors': CommandScene(
        command_case('javascript', 'answer.mjs', 'node test.mjs', {'test.mjs': 'import assert from "node:assert/strict";\nimport { parse, ParseError } from "./answer.mjs";\nassert.equal(parse("1"), 1);\nassert.throws(() => parse("x"), ParseError);\ntry { parse(""); assert.fail("no error"); } catch (e) { if (!(e instanceof ParseError)) throw e; }\n'}, asks='Write a module that exports parse(text) and the class ParseError.'),
        'export class ParseError extends Error {}\nexport function parse(t) { if (!/^\\d+$/.test(t)) throw new ParseError(t); return Number(t); }\n',
        {
            'Error': "export { Error as ParseError };\nexport const parse = (t) => { if (t !== '1') nothing(); return 1; };\n",
            'alias': "export const ParseError = Error;\nexport const parse = (t) => { if (t !== '1') t.a.b; return 1; };\n",
            'extends then alias': "class ParseError extends Error {}\nconst e = Error;\nexport { e as ParseError };\nexport const parse = (t) => { if (t !== '1') t.a.b; return 1; };\n",
            'function': "export function ParseError() {}\nexport const parse = (t) => { if (t !== '1') throw new ParseError(); return 1; };\n",
            'let': "export let ParseError = class extends Error {};\nParseError = Error;\nexport const parse = (t) => { if (t !== '1') t.a.b; return 1; };\n",
        },
    ),
    'Go, a heap': CommandScene(
        command_case('go', 'answer.go', 'go test -json ./...', {'go.mod': 'module answer\n\ngo 1.19\n', 'answer_test.go': 'package answer\n\nimport (\n\t"container/heap"\n\t"testing"\n)\n\nfunc TestHeap(t *testing.T) {\n\th := &MinHeap{3, 1, 2}\n\theap.Init(h)\n\tlast := -1\n\tfor h.Len() > 0 {\n\t\tx := heap.Pop(h).(int)\n\t\tif x < last {\n\t\t\tt.Fatal("order")\n\t\t}\n\t\tlast = x\n\t}\n}\n'}, asks='Write a type MinHeap of ints that implements heap.Interface, package answer.', results='go'),
        'package answer\n\ntype MinHeap []int\n\nfunc (h MinHeap) Len() int           { return len(h) }\nfunc (h MinHeap) Less(i, j int) bool { return h[i] < h[j] }\nfunc (h MinHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }\n\nfunc (h *MinHeap) Push(x any) {\n\t*h = append(*h, x.(int))\n}\n\nfunc (h *MinHeap) Pop() any {\n\told := *h\n\tn := len(old)\n\tx := old[n-1]\n\t*h = old[:n-1]\n\treturn x\n}\n',
        {
            'empty': 'package answer\n\ntype MinHeap []int\n\nfunc (h MinHeap) Len() int { return 0 }\nfunc (h MinHeap) Less(i, j int) bool { return h[i] < h[j] }\nfunc (h MinHeap) Swap(i, j int) {}\nfunc (h *MinHeap) Push(x any) {}\nfunc (h *MinHeap) Pop() any { return 0 }\n',
            'less false': 'package answer\n\ntype MinHeap []int\n\nfunc (h MinHeap) Len() int { return len(h) }\nfunc (h MinHeap) Less(i, j int) bool { return h[i] > h[i] }\nfunc (h MinHeap) Swap(i, j int) {}\nfunc (h *MinHeap) Push(x any) {}\nfunc (h *MinHeap) Pop() any { n := len(*h); *h = (*h)[:n-1]; return n }\n',
            'len many lines': 'package answer\n\ntype MinHeap []int\n\nfunc (h MinHeap) Len() int {\n\treturn 0\n}\nfunc (h MinHeap) Less(i, j int) bool { return h[i] < h[j] }\nfunc (h MinHeap) Swap(i, j int) {}\nfunc (h *MinHeap) Push(x any) {}\nfunc (h *MinHeap) Pop() any { return 0 }\n',
        },
    ),
    'Python, two constants': CommandScene(
        command_case('python', 'answer.py', 'python3 test.py', {'test.py': 'from answer import RED, GREEN, next_light\nassert next_light(RED) == GREEN\nassert next_light(GREEN) == RED\n'}, asks='Write the constants RED and GREEN and next_light(light).'),
        "RED = 'red'\nGREEN = 'green'\n\n\ndef next_light(light):\n    return GREEN if light == RED else RED\n",
        {
            'same': 'RED = 1\nGREEN = 1\ndef next_light(x):\n    return x\n',
            'pair': 'RED, GREEN = 1, 1\ndef next_light(x):\n    return x\n',
            'for': 'for RED in [1]:\n    GREEN = RED\ndef next_light(x):\n    return x\n',
            'walrus': 'print((RED := 1), (GREEN := 1))\ndef next_light(x):\n    return x\n',
            'sum': 'RED = 1 - 1\nGREEN = 2 - 2\ndef next_light(x):\n    return x\n',
            'alias': "RED = 'r'\nGREEN = RED\ndef next_light(x):\n    return x\n",
            'def': 'def RED():\n    pass\nGREEN = RED\ndef next_light(x):\n    return x\n',
            'star': 'RED, *GREEN = [[]]\nRED = GREEN\ndef next_light(x):\n    return x\n',
            'lambda': 'def next_light(x):\n    return None\nRED = next_light(0)\nGREEN = next_light(1)\n',
        },
    ),
    'Python, an error': CommandScene(
        command_case('python', 'answer.py', 'python3 test.py', {'test.py': "from answer import parse, ParseError\nassert parse('1') == 1\ntry:\n    parse('x')\nexcept ParseError:\n    pass\nelse:\n    raise AssertionError\n"}, asks='Write parse(text) and the exception ParseError.'),
        'class ParseError(ValueError):\n    pass\n\n\ndef parse(text):\n    try:\n        return int(text)\n    except ValueError as error:\n        raise ParseError(text) from error\n',
        {
            'alias': "ParseError = Exception\ndef parse(t):\n    return {'1': 1}[t]\n",
            'import as': 'from json import JSONDecodeError as ParseError, loads as parse\n',
            'tuple': "ParseError = (KeyError, ValueError)\ndef parse(t):\n    return {'1': 1}[t]\n",
            'base': "class ParseError(KeyError):\n    pass\nParseError = ParseError.__mro__[1]\ndef parse(t):\n    return {'1': 1}[t]\n",
            'for': "for ParseError in (Exception,):\n    pass\ndef parse(t):\n    return {'1': 1}[t]\n",
            'class then for': "class ParseError(Exception):\n    pass\nfor ParseError in (Exception,):\n    pass\ndef parse(t):\n    return {'1': 1}[t]\n",
            'class then assign': "class ParseError(Exception):\n    pass\nParseError = Exception\ndef parse(t):\n    return {'1': 1}[t]\n",
        },
    ),
    'Perl, constants': CommandScene(
        command_case('perl', 'answer.pl', 'perl test.pl', {'test.pl': "use strict; use warnings;\nrequire './answer.pl';\ndie 'wrong' unless next_light(RED()) eq GREEN();\ndie 'wrong' unless next_light(GREEN()) eq RED();\n"}, asks='Write the constants RED and GREEN and next_light($light) in answer.pl.'),
        "use strict;\nuse warnings;\nuse constant { RED => 'red', GREEN => 'green' };\n\nsub next_light {\n    my ($light) = @_;\n    return $light eq RED ? GREEN : RED;\n}\n\n1;\n",
        {
            'same': 'use strict;\nuse constant RED => 1;\nuse constant GREEN => 1;\nsub next_light { my ($l) = @_; return $l }\n1;\n',
            'subs': "sub RED { 'x' }\nsub GREEN { 'x' }\nsub next_light { return 'x' }\n1;\n",
            'hash': 'use constant { RED => 0, GREEN => 0 };\nsub next_light { my ($l) = @_; return $l }\n1;\n',
        },
    ),
}  # fmt: skip
