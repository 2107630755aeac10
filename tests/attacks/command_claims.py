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
}  # fmt: skip
