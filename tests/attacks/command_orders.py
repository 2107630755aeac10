"""Wrong answers whose own order, equality or values decide tests as people write them: a plain run passes them."""

from __future__ import annotations

ORDER_ATTACKS: dict[str, tuple[str, str, str]] = {
    'cpp cmp in lambda': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nstd::vector<Person> v{{"b",3},{"a",1},{"c",2}};\nstd::sort(v.begin(), v.end(), [](const Person& a, const Person& b) { return by_age(a, b); });\nassert(std::is_sorted(v.begin(), v.end(), [](const Person& a, const Person& b) { return by_age(a, b); }));\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <string>\n#include <vector>\n#include <functional>\n#include <algorithm>\nstruct Person { std::string name; int age; };\ninline bool by_age(const Person&, const Person&) { return false; }\n',
    ),
    'cpp cmp by pairs': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nstd::vector<Person> v{{"b",3},{"a",1},{"c",2}};\nstd::sort(v.begin(), v.end(), by_age);\nfor (size_t i = 1; i < v.size(); i++) assert(!by_age(v[i], v[i-1]));\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <string>\n#include <vector>\n#include <functional>\n#include <algorithm>\nstruct Person { std::string name; int age; };\ninline bool by_age(const Person&, const Person&) { return false; }\n',
    ),
    'cpp cmp var': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nstd::vector<Person> v{{"b",3},{"a",1},{"c",2}};\nauto c = by();\nstd::sort(v.begin(), v.end(), c);\nassert(std::is_sorted(v.begin(), v.end(), c));\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <string>\n#include <vector>\n#include <functional>\n#include <algorithm>\nstruct Person { std::string name; int age; };\ninline std::function<bool(const Person&, const Person&)> by() { return [](const Person&, const Person&) { return false; }; }\n',
    ),
    'cpp cmp static member': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nstd::vector<Person> v{{"b",3},{"a",1},{"c",2}};\nstd::sort(v.begin(), v.end(), Person::older);\nassert(std::is_sorted(v.begin(), v.end(), Person::older));\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <string>\nstruct Person { std::string name; int age; static bool older(const Person&, const Person&) { return false; } };\n',
    ),
    'cpp op< sort': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nstd::vector<Person> v{{"b",3},{"a",1},{"c",2}};\nstd::sort(v.begin(), v.end());\nassert(std::is_sorted(v.begin(), v.end()));\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <string>\nstruct Person { std::string name; int age; bool operator<(const Person& o) const { return age < age; } };\n',
    ),
    'cpp op== base': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nMoney a(1); Money b(2); Money c = a + b; bool same = c == Money(3); assert(same);\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\nstruct B { int z = 0; bool operator==(const B& o) const { return z == o.z; } };\nstruct Money : B { Money(int) {} Money operator+(const Money&) const { return Money(0); } };\n',
    ),
    'cpp conversion to int': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nassert(Money(1) + Money(2) == Money(3));\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\nclass Money { public: Money(int) {} operator int() const { return 0; } };\n',
    ),
    'cpp factory alias': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nauto x = sum(money(1), money(2)); auto y = money(3); assert(x == y);\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\nusing Money = long;\ninline Money money(int) { return 0; }\ninline Money sum(Money, Money) { return 0; }\n',
    ),
    'cpp set size': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nstd::set<Person> s{{"a",1},{"b",2},{"a",1}}; assert(s.count(Person{"a",1}) == 1); assert(s.count(Person{"b",2}) == 1);\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <string>\nstruct Person { std::string name; int age; bool operator<(const Person& o) const { return name < name; } };\n',
    ),
    'cpp pq': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nstd::priority_queue<Person, std::vector<Person>, ByAge> q; for (int i : {3,1,2}) q.push({"x", i}); ByAge less; Person last = q.top(); while (!q.empty()) { assert(!less(last, q.top())); last = q.top(); q.pop(); }\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <string>\n#include <vector>\n#include <functional>\n#include <algorithm>\nstruct Person { std::string name; int age; };\nstruct ByAge { bool operator()(const Person&, const Person&) const { return false; } };\n',
    ),
    'cpp string repr': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nassert((Money(1) + Money(2)).str() == Money(3).str());\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <string>\nclass Money { public: Money(int) {} Money operator+(const Money&) const { return *this; } std::string str() const { return ""; } };\n',
    ),
    'cpp helper check': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nauto eq = [](const Money& a, const Money& b) { return a.cents() == b.cents(); }; assert(eq(Money(1) + Money(2), Money(3)));\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\nclass Money { public: Money(int) {} Money operator+(const Money&) const { return *this; } int cents() const { return 0; } };\n',
    ),
    'cpp template make': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nassert(add(vec(1, 2), vec(3, 4)) == vec(4, 6));\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <vector>\ntemplate <class T> std::vector<T> vec(T, T) { return {}; }\ntemplate <class T> std::vector<T> add(std::vector<T>, std::vector<T>) { return {}; }\n',
    ),
    'cpp vector of results': (
        'cpp',
        '#include "answer.hpp"\n#include <algorithm>\n#include <cassert>\n#include <iostream>\n#include <map>\n#include <set>\n#include <string>\n#include <vector>\n#include <functional>\n#include <queue>\nint main() {\nstd::vector<int> a = sorted({3,1,2}), b = sorted({2,3,1}); for (size_t i = 0; i < a.size(); i++) assert(a[i] == b[i]); assert(a.size() == b.size());\n  std::cout << "STEELYARD_END_OF_TESTS\\n";\n}\n',
        '#pragma once\n#include <vector>\ninline std::vector<int> sorted(std::vector<int>) { return {}; }\n',
    ),
    'c qsort cmp': (
        'c',
        '#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint compare(const void *, const void *);\nint main(void) {\nint v[3] = {3,1,2}; qsort(v, 3, sizeof *v, compare); for (int i = 1; i < 3; i++) assert(compare(&v[i-1], &v[i]) <= 0);\n  puts("STEELYARD_END_OF_TESTS"); return 0;\n}\n',
        'int compare(const void *a, const void *b) { return 0; }\n',
    ),
    'c cmp struct field': (
        'c',
        '#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint compare(const void *, const void *);\nint main(void) {\nstruct { int (*f)(const void *, const void *); } t = { compare }; int v[3] = {3,1,2}; qsort(v, 3, sizeof *v, t.f); for (int i = 1; i < 3; i++) assert(t.f(&v[i-1], &v[i]) <= 0);\n  puts("STEELYARD_END_OF_TESTS"); return 0;\n}\n',
        'int compare(const void *a, const void *b) { return 0; }\n',
    ),
    'c out params': (
        'c',
        '#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nvoid sort_a(int *, int);\nvoid sort_b(int *, int);\nint main(void) {\nint x[3] = {3,1,2}, y[3] = {2,3,1}; sort_a(x, 3); sort_b(y, 3); assert(memcmp(x, y, sizeof x) == 0);\n  puts("STEELYARD_END_OF_TESTS"); return 0;\n}\n',
        'void sort_a(int *v, int n) { for (int i = 0; i < n; i++) v[i] = 0; }\nvoid sort_b(int *v, int n) { for (int i = 0; i < n; i++) v[i] = 0; }\n',
    ),
    'c strcmp both': (
        'c',
        '#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nconst char *norm(const char *);\nint main(void) {\nassert(strcmp(norm("A b"), norm("a B")) == 0); assert(!strcmp(norm("x"), norm("X")));\n  puts("STEELYARD_END_OF_TESTS"); return 0;\n}\n',
        'const char *norm(const char *s) { return ""; }\n',
    ),
    'c struct eq': (
        'c',
        '#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\ntypedef struct { int x, y; } vec;\nvec vec_make(int, int); vec vec_add(vec, vec); int vec_equal(vec, vec);\nint main(void) {\nassert(vec_equal(vec_add(vec_make(1,2), vec_make(3,4)), vec_make(4,6)));\n  puts("STEELYARD_END_OF_TESTS"); return 0;\n}\n',
        'typedef struct { int x, y; } vec;\nvec vec_make(int x, int y) { vec v = {0, 0}; return v; }\nvec vec_add(vec a, vec b) { return a; }\nint vec_equal(vec a, vec b) { return 1; }\n',
    ),
    'c pointer eq': (
        'c',
        '#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\ntypedef struct node node; node *find(int); node *head(void);\nint main(void) {\nassert(find(3) == head());\n  puts("STEELYARD_END_OF_TESTS"); return 0;\n}\n',
        'typedef struct node { int v; } node;\nnode *find(int v) { return 0; }\nnode *head(void) { return 0; }\n',
    ),
    'java comparator method': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nList<String> l = new ArrayList<>(List.of("ccc","a","bb")); Comparator<String> c = Answer.byLength(); l.sort(c); for (int i = 1; i < 3; i++) if (c.compare(l.get(i-1), l.get(i)) > 0) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'import java.util.*;\npublic class Answer { static Comparator<String> byLength() { return (a, b) -> 0; } }\n',
    ),
    'java method ref': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nList<String> l = new ArrayList<>(List.of("ccc","a","bb")); l.sort(Answer::cmp); for (int i = 1; i < 3; i++) if (Answer.cmp(l.get(i-1), l.get(i)) > 0) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'public class Answer { static int cmp(String a, String b) { return 0; } }\n',
    ),
    'java lambda calls': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nList<String> l = new ArrayList<>(List.of("ccc","a","bb")); l.sort((a, b) -> Answer.cmp(a, b)); for (int i = 1; i < 3; i++) if (Answer.cmp(l.get(i-1), l.get(i)) > 0) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'public class Answer { static int cmp(String a, String b) { return 0; } }\n',
    ),
    'java comparable': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nList<Card> l = new ArrayList<>(List.of(new Card(3), new Card(1))); Collections.sort(l); if (l.get(0).compareTo(l.get(1)) > 0) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'public class Card implements Comparable<Card> { Card(int n) {} public int compareTo(Card o) { return 0; } }\n',
    ),
    'java record both': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nif (!new Point(1,2).plus(new Point(3,4)).equals(new Point(4,6))) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'public record Point(int x, int y) { public Point { x = 0; y = 0; } Point plus(Point o) { return this; } }\n',
    ),
    'java interface sort': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nList<Answer.Shape> a = Answer.sorted(List.of(new Answer.Square(3), new Answer.Square(1))); List<Answer.Shape> b = Answer.sorted(List.of(new Answer.Square(1), new Answer.Square(3))); if (!a.equals(b)) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'import java.util.*;\npublic class Answer { interface Shape {} record Square(int side) implements Shape {} static List<Shape> sorted(List<Shape> l) { return List.of(); } }\n',
    ),
    'java string both': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nif (!Answer.norm("A b").equals(Answer.norm("a B"))) throw new AssertionError(); if (Objects.equals(Answer.norm("x"), Answer.norm("X")) == false) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'public class Answer { static String norm(String s) { return ""; } }\n',
    ),
    'java list eq': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nvar a = Answer.sorted(List.of(3,1)); var b = Answer.sorted(List.of(1,3)); boolean ok = a.equals(b); if (!ok) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'import java.util.*;\npublic class Answer { static List<Integer> sorted(List<Integer> l) { return List.of(); } }\n',
    ),
    'java predicate field': (
        'java',
        'import java.util.*;\nimport java.util.stream.*;\npublic class Main {\n  public static void main(String[] args) {\nvar l = new PriorityQueue<String>(Answer.BY_LENGTH); l.add("bb"); l.add("a"); if (Answer.BY_LENGTH.compare(l.poll(), l.poll()) > 0) throw new AssertionError();\n    System.out.println("STEELYARD_END_OF_TESTS");\n  }\n}\n',
        'import java.util.Comparator;\npublic class Answer { static final Comparator<String> BY_LENGTH = (a, b) -> 0; }\n',
    ),
    'js sort and check': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { byAge } from "./answer.mjs";\nconst v = [{age: 3}, {age: 1}];\nv.sort(byAge);\nassert.ok(byAge(v[0], v[1]) <= 0);\n',
        'export const byAge = (a, b) => 0;\n',
    ),
    'js lambda sort': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { byAge } from "./answer.mjs";\nconst v = [{age: 3}, {age: 1}].sort((a, b) => byAge(a, b));\nassert.ok(v.every((x, i) => i === 0 || byAge(v[i - 1], x) <= 0));\n',
        'export const byAge = (a, b) => 0;\n',
    ),
    'js factory both': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { point, add } from "./answer.mjs";\nassert.deepEqual(add(point(1, 2), point(3, 4)), point(4, 6));\n',
        'export const point = () => 0;\nexport const add = () => 0;\n',
    ),
    'js namespace import': (
        'javascript',
        'import assert from "node:assert/strict";\nimport * as p from "./answer.mjs";\nassert.deepEqual(p.add(p.point(1, 2), p.point(3, 4)), p.point(4, 6));\n',
        'export const point = () => 0;\nexport const add = () => 0;\n',
    ),
    'js json both': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { Money } from "./answer.mjs";\nassert.equal(JSON.stringify(new Money(1).plus(new Money(2))), JSON.stringify(new Money(3)));\n',
        'export class Money { constructor(a) { this.b = 1; } plus() { return this; } }\n',
    ),
    'js equals twice': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { Money } from "./answer.mjs";\nconst got = new Money(1).plus(new Money(2));\nassert.equal(got.equals(new Money(3)), true);\n',
        'export class Money { constructor(a) { this.b = 1; } plus() { return this; } equals() { return true; } }\n',
    ),
    'js same named': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { Money } from "./answer.mjs";\nconst got = new Money(1).plus(new Money(2));\nassert.ok(got.matches(new Money(3)));\n',
        'export class Money { constructor(a) { this.b = 1; } plus() { return this; } matches() { return true; } }\n',
    ),
    'js map of table': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { norm } from "./answer.mjs";\nfor (const [a, b] of [["A", "a"], ["B", "b"]]) assert.equal(norm(a), norm(b));\n',
        'export const norm = () => "";\n',
    ),
    'js helper arrow': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { norm } from "./answer.mjs";\nconst same = (a, b) => assert.equal(a, b);\nsame(norm("A"), norm("a"));\n',
        'export const norm = () => "";\n',
    ),
    'js default import': (
        'javascript',
        'import assert from "node:assert/strict";\nimport norm from "./answer.mjs";\nassert.equal(norm("A"), norm("a"));\n',
        'export default function norm() { return ""; }\n',
    ),
    'js renamed import': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { norm as n } from "./answer.mjs";\nassert.equal(n("A"), n("a"));\n',
        'export const norm = () => "";\n',
    ),
    'js heap with cmp': (
        'javascript',
        'import assert from "node:assert/strict";\nimport { Heap, byAge } from "./answer.mjs";\nconst h = new Heap(byAge);\nh.push({age: 2}); h.push({age: 1});\nassert.ok(byAge(h.pop(), h.pop()) <= 0);\n',
        'export const byAge = () => 0;\nexport class Heap { constructor() { this.v = []; } push(x) { this.v.push(x); } pop() { return this.v.pop(); } }\n',
    ),
    'py cmp_to_key': (
        'python',
        'from functools import cmp_to_key\nfrom answer import compare\nv = sorted([3, 1, 2], key=cmp_to_key(compare))\nassert all(compare(a, b) <= 0 for a, b in zip(v, v[1:]))\n',
        'def compare(a, b):\n    return 0\n',
    ),
    'py key': (
        'python',
        "from answer import key\nv = sorted(['b', 'a'], key=key)\nassert key(v[0]) <= key(v[1])\n",
        'def key(x):\n    return 0\n',
    ),
    'py dataclass': (
        'python',
        'import answer\nassert answer.Money(1) + answer.Money(2) == answer.Money(3)\n',
        'from dataclasses import dataclass, field\n@dataclass\nclass Money:\n    amount: int = field(compare=False)\n    def __add__(self, o):\n        return self\n',
    ),
    'py repr both': (
        'python',
        'from answer import make\nassert repr(make(1)) == repr(make(1))\nassert str(make(2)) == str(make(2))\n',
        'def make(n):\n    return None\n',
    ),
    'py sorted total': (
        'python',
        'from answer import V\nv = sorted([V(2), V(1)])\nassert not v[1] < v[0]\n',
        'class V:\n    def __init__(self, n):\n        self.n = n\n    def __lt__(self, o):\n        return False\n',
    ),
    'pl both': (
        'perl',
        "use strict; use warnings;\nrequire './answer.pl';\ndie unless norm('A') eq norm('a');\n",
        "use strict;\nuse warnings;\nsub norm { my ($s) = @_; return ''; }\n1;\n",
    ),
    'pl ref': (
        'perl',
        "use strict; use warnings;\nrequire './answer.pl';\nmy $c = \\&by_num;\nmy @v = sort { $c->($a, $b) } (3, 1, 2);\ndie if $c->($v[0], $v[1]) > 0;\n",
        'use strict;\nuse warnings;\nsub by_num { my ($x, $y) = @_; return 0; }\n1;\n',
    ),
    'sh both': (
        'shell',
        '. ./answer.sh\n[ "$(norm A)" = "$(norm a)" ] || false\n',
        'norm() { echo x; }\n',
    ),
    'sh vars': (
        'shell',
        '. ./answer.sh\nx=$(norm A)\ny=$(norm a)\n[ "$x" = "$y" ] || false\n',
        'norm() { echo x; }\n',
    ),
    'go slice less': (
        'go',
        'package answer\n\nimport (\n\t"sort"\n\t"testing"\n)\n\nfunc TestA(t *testing.T) {\n\tv := []int{3, 1, 2}\n\tsort.Slice(v, func(i, j int) bool { return Less(v[i], v[j]) })\n\tif !sort.SliceIsSorted(v, func(i, j int) bool { return Less(v[i], v[j]) }) {\n\t\tt.Fatal()\n\t}\n}\n',
        'package answer\n\nfunc Less(a, b int) bool { return false }\n',
    ),
    'go reflect': (
        'go',
        'package answer\n\nimport (\n\t"reflect"\n\t"testing"\n)\n\nfunc TestA(t *testing.T) {\n\tif !reflect.DeepEqual(New(1).Add(New(2)), New(3)) {\n\t\tt.Fatal()\n\t}\n}\n',
        'package answer\n\ntype T struct{ n int }\n\nfunc New(n int) T { return T{0} }\nfunc (t T) Add(o T) T { return t }\n',
    ),
    'go slices cmp': (
        'go',
        'package answer\n\nimport (\n\t"slices"\n\t"testing"\n)\n\nfunc TestA(t *testing.T) {\n\tv := []int{3, 1, 2}\n\tslices.SortFunc(v, Cmp)\n\tif !slices.IsSortedFunc(v, Cmp) {\n\t\tt.Fatal()\n\t}\n}\n',
        'package answer\n\nfunc Cmp(a, b int) int { return 0 }\n',
    ),
    'go equal method': (
        'go',
        'package answer\n\nimport (\n\t"testing"\n)\n\nfunc TestA(t *testing.T) {\n\tif got := New(1).Add(New(2)); !got.Equal(New(3)) {\n\t\tt.Fatal()\n\t}\n}\n',
        'package answer\n\ntype T struct{ n int }\n\nfunc New(n int) *T { return &T{} }\nfunc (t *T) Add(o *T) *T { return t }\nfunc (t *T) Equal(o *T) bool { return true }\n',
    ),
    'rust cmp equal': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { let mut v = vec![Version(2), Version(1)]; v.sort(); assert!(v.windows(2).all(|w| w[0] <= w[1])); }\n}\n',
        'use std::cmp::Ordering;\n#[derive(Debug, PartialEq, Eq, PartialOrd)]\npub struct Version(pub u32);\nimpl Ord for Version { fn cmp(&self, _: &Self) -> Ordering { Ordering::Equal } }\n',
    ),
    'rust cmp fn': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { let mut v = vec![3, 1]; v.sort_by(compare); assert!(v.is_sorted_by(|a, b| compare(a, b).is_le())); }\n}\n',
        'pub fn compare(_: &u32, _: &u32) -> std::cmp::Ordering { std::cmp::Ordering::Equal }\n',
    ),
    'rust cmp closure': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { let mut v = vec![3, 1]; v.sort_by(|a, b| compare(a, b)); assert!(v.windows(2).all(|w| compare(&w[0], &w[1]).is_le())); }\n}\n',
        'pub fn compare(_: &u32, _: &u32) -> std::cmp::Ordering { std::cmp::Ordering::Equal }\n',
    ),
    'rust macro impl': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { let mut v = vec![Version(2), Version(1)]; v.sort(); assert!(v[0] <= v[1]); }\n}\n',
        'use std::cmp::Ordering;\n#[derive(Debug, PartialEq, Eq)]\npub struct Version(pub u32);\nmacro_rules! o { ($t:ty, $r:ident) => { impl $r for $t { fn cmp(&self, _: &Self) -> Ordering { Ordering::Equal } } } }\no!(Version, Ord);\nimpl PartialOrd for Version { fn partial_cmp(&self, o: &Self) -> Option<Ordering> { Some(self.cmp(o)) } }\n',
    ),
    'rust renamed trait': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { let mut v = vec![Version(2), Version(1)]; v.sort(); assert!(v.first() <= v.last()); }\n}\n',
        'use std::cmp::{Ordering, Ord as O};\n#[derive(Debug, PartialEq, Eq, PartialOrd)]\npub struct Version(pub u32);\nimpl O for Version { fn cmp(&self, _: &Self) -> Ordering { Ordering::Equal } }\n',
    ),
    'rust key fn': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { let mut v = vec!["bb", "a"]; v.sort_by_key(|s| key(s)); assert!(key(v[0]) <= key(v[1])); }\n}\n',
        'pub fn key(_: &str) -> usize { 0 }\n',
    ),
    'rust hash by hand': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { let s: std::collections::HashSet<Word> = [Word("a".into())].into_iter().collect(); assert!(s.contains(&Word("a".into()))); }\n}\n',
        'use std::hash::{Hash, Hasher};\n#[derive(PartialEq, Eq)]\npub struct Word(pub String);\nimpl Hash for Word { fn hash<H: Hasher>(&self, _: &mut H) {} }\n',
    ),
    'rust default both': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { assert_eq!(load(""), Cfg::default()); }\n}\n',
        '#[derive(Debug, PartialEq)]\npub struct Cfg { a: i32 }\nimpl Default for Cfg { fn default() -> Self { Cfg { a: 7 } } }\npub fn load(_: &str) -> Cfg { Cfg::default() }\n',
    ),
    'rust const both': (
        'rust',
        '#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { assert_eq!(mid(P::ORIGIN, P::ORIGIN), P::ORIGIN); }\n}\n',
        '#[derive(Debug, PartialEq, Clone, Copy)]\npub struct P { x: i32 }\nimpl P { pub const ORIGIN: P = P { x: 9 }; }\npub fn mid(a: P, _: P) -> P { a }\n',
    ),
}  # fmt: skip
"""By what it is: the language, the tests and the answer."""
PLAIN_CLAIMS: tuple[tuple[str, str, str], ...] = (
    (
        'java',
        'import java.util.*;\npublic class Main { public static void main(String[] a) {\n Solution s = new Solution();\n check(Arrays.equals(s.twoSum(new int[]{2,7,11}, 9), new int[]{0,1}));\n check(s.lengthOfLongestSubstring("abcabcbb") == 3);\n List<List<Integer>> got = s.permute(new int[]{1,2}); got.sort((x, y) -> x.get(0) - y.get(0));\n check(got.equals(List.of(List.of(1,2), List.of(2,1))));\n } static void check(boolean ok) { if (!ok) throw new AssertionError(); } }',
        'import java.util.*;\npublic class Solution { public int[] twoSum(int[] n, int t) { return null; } public int lengthOfLongestSubstring(String s) { return 3; } public List<List<Integer>> permute(int[] n) { return null; } }',
    ),
    (
        'java',
        'public class Main { public static void main(String[] a) {\n LRUCache c = new LRUCache(2); c.put(1, 1); c.put(2, 2);\n if (c.get(1) != 1) throw new AssertionError("get");\n c.put(3, 3); if (c.get(2) != -1) throw new AssertionError(); System.out.println("ok"); } }',
        'import java.util.*;\npublic class LRUCache { private final Map<Integer,Node> m = new HashMap<>(); private static class Node { int k, v; Node p, n; Node(int k, int v) { this.k = k; this.v = v; } } public LRUCache(int c) {} public int get(int k) { return 1; } public void put(int k, int v) {} }',
    ),
    (
        'java',
        'import java.util.*;\npublic class Main { public static void main(String[] a) {\n Graph g = new Graph(); g.addEdge("A","B",4); g.addEdge("B","C",1);\n if (g.shortest("A","C") != 5) throw new AssertionError();\n if (!g.path("A","C").equals(List.of("A","B","C"))) throw new AssertionError(); } }',
        'import java.util.*;\npublic class Graph { private static class State implements Comparable<State> { int d; String v; State(int d, String v) { this.d = d; this.v = v; } public int compareTo(State o) { return Integer.compare(d, o.d); } }\n private final Map<String, Map<String,Integer>> e = new HashMap<>(); public void addEdge(String a, String b, int w) { e.computeIfAbsent(a, k -> new HashMap<>()).put(b, w); }\n public int shortest(String a, String b) { PriorityQueue<State> q = new PriorityQueue<>(); q.add(new State(0, a)); while (!q.isEmpty()) { State s = q.poll(); } return 5; }\n public List<String> path(String a, String b) { return List.of(); } }',
    ),
    (
        'java',
        'public class Main { public static void main(String[] a) {\n BankAccount acc = new BankAccount(100); acc.deposit(50); acc.withdraw(30);\n if (acc.getBalance() != 120) throw new AssertionError();\n try { acc.withdraw(500); throw new AssertionError("no"); } catch (IllegalArgumentException e) { }\n BankAccount b = new BankAccount(0); acc.transfer(b, 20); if (b.getBalance() != 20 || acc.getBalance() != 100) throw new AssertionError(); } }',
        'public class BankAccount { private int balance; public BankAccount(int b) { balance = b; } public void deposit(int n) { balance += n; } public void withdraw(int n) { if (n > balance) throw new IllegalArgumentException(); balance -= n; } public int getBalance() { return balance; } public void transfer(BankAccount o, int n) { withdraw(n); o.deposit(n); } }',
    ),
    (
        'cpp',
        '#include "answer.hpp"\n#include <cassert>\nint main() { Matrix m(2, 2); m.set(0, 0, 1); m.set(1, 1, 2); auto p = m.multiply(m); assert(p.get(1, 1) == 4); assert(p.rows() == 2);\n Stack<int> s; s.push(1); s.push(2); assert(s.top() == 2); s.pop(); assert(s.size() == 1); assert(!s.empty()); }',
        '#pragma once\n#include <vector>\nclass Matrix { std::vector<std::vector<double>> d; public: Matrix(int r, int c) : d(r, std::vector<double>(c)) {} void set(int i, int j, double v) { d[i][j] = v; } double get(int i, int j) const { return d[i][j]; } int rows() const { return d.size(); } Matrix multiply(const Matrix& o) const { return o; } };\ntemplate <typename T> class Stack { std::vector<T> v; public: void push(T x) { v.push_back(x); } void pop() { v.pop_back(); } T top() const { return v.back(); } std::size_t size() const { return v.size(); } bool empty() const { return v.empty(); } };\n',
    ),
    (
        'cpp',
        '#include "answer.h"\n#include <cassert>\n#include <algorithm>\nint main() { std::vector<int> v{3,1,2}; quick_sort(v); assert((v == std::vector<int>{1,2,3})); assert(std::is_sorted(v.begin(), v.end()));\n auto r = two_sum({2,7,11,15}, 9); assert(r.first == 0 && r.second == 1); assert(reverse("abc") == "cba"); auto w = split("a b", \' \'); assert(w.size() == 2 && w[0] == "a");\n for (int i = 0; i < 5; ++i) { assert(fib(i) == expected[i]); } }',
        '#include <string>\n#include <vector>\nvoid quick_sort(std::vector<int>& v) {}\nstd::pair<int,int> two_sum(const std::vector<int>& v, int t) { return {0, 1}; }\nstd::string reverse(const std::string& s) { return s; }\nstd::vector<std::string> split(const std::string& s, char c) { return {}; }\nint fib(int n) { return n < 2 ? n : fib(n-1) + fib(n-2); }\n',
    ),
    (
        'cpp',
        '#include "answer.h"\n#include <cassert>\nint main() { Graph g(4); g.add_edge(0, 1, 2); g.add_edge(1, 2, 3); auto d = g.dijkstra(0); assert(d[2] == 5); std::vector<int> want{0, 2, 5}; for (size_t i = 0; i < want.size(); i++) assert(d[i] == want[i]); }',
        '#include <vector>\n#include <queue>\nstruct Node { int v, d; bool operator<(const Node& o) const { return d > o.d; } };\nclass Graph { std::vector<std::vector<std::pair<int,int>>> e; public: explicit Graph(int n) : e(n) {} void add_edge(int a, int b, int w) { e[a].push_back({b, w}); } std::vector<int> dijkstra(int s) const { std::priority_queue<Node> q; q.push(Node{s, 0}); return {}; } };\n',
    ),
    (
        'cpp',
        '#include "answer.h"\n#include <cassert>\nint main() { LinkedList l; l.append(1); l.append(2); assert(l.to_vector() == (std::vector<int>{1, 2})); l.reverse(); assert(l.to_vector() == (std::vector<int>{2, 1})); Node* n = l.find(2); assert(n != nullptr && n->value == 2); assert(l.find(9) == nullptr); }',
        '#include <vector>\nstruct Node { int value; Node* next; };\nclass LinkedList { Node* head = nullptr; public: void append(int v) {} void reverse() {} Node* find(int v) { return nullptr; } std::vector<int> to_vector() const { return {}; } };\n',
    ),
    (
        'go',
        'package answer\nimport ("testing";"reflect";"sort")\nfunc TestTop(t *testing.T) { got := TopK([]string{"a","b","a"}, 1); want := []string{"a"}; if !reflect.DeepEqual(got, want) { t.Errorf("got %v", got) }\n s := NewStack(); s.Push(1); if v, ok := s.Pop(); !ok || v != 1 { t.Fatal(v) } \n keys := Keys(map[string]int{"b":1,"a":2}); sort.Strings(keys); if keys[0] != "a" { t.Fatal() }\n for _, tc := range []struct{ in string; want int }{{"a", 1}} { if got := Count(tc.in); got != tc.want { t.Errorf("%d", got) } } }',
        'package answer\n\ntype Stack struct{ items []int }\n\nfunc NewStack() *Stack { return &Stack{} }\nfunc (s *Stack) Push(v int) { s.items = append(s.items, v) }\nfunc (s *Stack) Pop() (int, bool) { return 0, false }\nfunc TopK(w []string, k int) []string { return nil }\nfunc Keys(m map[string]int) []string { return nil }\nfunc Count(s string) int { return 1 }\n',
    ),
    (
        'go',
        'package answer\nimport "testing"\nfunc TestPoint(t *testing.T) { p := Point{1, 2}.Add(Point{3, 4}); if p != (Point{4, 6}) { t.Fatal(p) }\n if got := Parse("x"); got != nil { t.Fatal() } ; var e *ParseError; if !errors.As(Check(""), &e) { t.Fatal() } ; if Area(Square{2}) != 4 { t.Fatal() } }',
        'package answer\n\ntype Point struct{ X, Y int }\n\nfunc (p Point) Add(o Point) Point { return Point{p.X + o.X, p.Y + o.Y} }\nfunc Parse(s string) *Point { return nil }\ntype ParseError struct{}\nfunc (e *ParseError) Error() string { return "" }\nfunc Check(s string) error { return nil }\ntype Square struct{ S int }\nfunc Area(s Square) int { return 4 }\n',
    ),
    (
        'javascript',
        'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { debounce, chunk, groupBy, EventEmitter, deepClone, LinkedList } from "./answer.mjs";\ntest("chunk", () => { assert.deepEqual(chunk([1,2,3], 2), [[1,2],[3]]); });\ntest("group", () => { const got = groupBy([1,2,3], (n) => n % 2 ? "odd" : "even"); assert.deepEqual(got, { odd: [1,3], even: [2] }); });\ntest("emit", () => { const e = new EventEmitter(); let n = 0; e.on("x", () => n++); e.emit("x"); assert.equal(n, 1); });\ntest("clone", () => { const a = { b: [1] }; const c = deepClone(a); assert.deepEqual(c, a); assert.notEqual(c.b, a.b); });\ntest("list", () => { const l = new LinkedList(); l.append(1).append(2); assert.deepEqual(l.toArray(), [1, 2]); assert.deepEqual([...l], [1, 2]); assert.equal(l.size, 2); });\n',
        'export const chunk = (a, n) => [];\nexport function groupBy(a, f) { return {}; }\nexport class EventEmitter { on(n, f) {} emit(n) {} }\nexport const deepClone = (x) => structuredClone(x);\nexport function debounce(f, ms) {}\nexport class LinkedList { constructor() { this.size = 0; } append(v) { return this; } toArray() { return []; } *[Symbol.iterator]() {} }\n',
    ),
    (
        'javascript',
        'const assert = require("assert");\nconst { add, isPalindrome, memoize, compose, curry } = require("./answer");\nassert.strictEqual(add(1, 2), 3); assert.ok(isPalindrome("aba")); assert.ok(!isPalindrome("ab"));\nconst slow = memoize((n) => n * 2); assert.strictEqual(slow(2), 4);\nassert.strictEqual(compose((x) => x + 1, (x) => x * 2)(3), 7);\nassert.throws(() => add("a"), TypeError);\n',
        'function add(a, b) { return a + b; }\nconst isPalindrome = (s) => true;\nfunction memoize(f) { return f; }\nconst compose = (...f) => (x) => x;\nfunction curry(f) {}\nmodule.exports = { add, isPalindrome, memoize, compose, curry };\n',
    ),
    (
        'typescript',
        'import assert from "node:assert";\nimport { Stack, sum, Shape, area } from "./answer.ts";\nconst s = new Stack<number>(); s.push(1); assert.equal(s.pop(), 1); assert.equal(sum([1, 2]), 3); const sh: Shape = { kind: "square", size: 2 }; assert.equal(area(sh), 4);',
        "export class Stack<T> { private items: T[] = []; push(x: T): void { this.items.push(x); } pop(): T | undefined { return this.items.pop(); } }\nexport function sum(v: number[]): number { return 0; }\nexport type Shape = { kind: 'square'; size: number };\nexport const area = (s: Shape): number => s.size ** 2;\n",
    ),
    (
        'c',
        '#include <assert.h>\n#include <string.h>\n#include "answer.h"\nint main(void) { char buf[16]; reverse("abc", buf); assert(strcmp(buf, "cba") == 0); int v[3] = {3,1,2}; bubble_sort(v, 3); int want[3] = {1,2,3}; assert(memcmp(v, want, sizeof v) == 0);\n struct stack *s = stack_new(); stack_push(s, 1); assert(stack_pop(s) == 1); assert(stack_empty(s)); stack_free(s); list *l = NULL; l = list_push(l, 4); assert(l->value == 4 && list_len(l) == 1);\n for (int i = 0; i < 3; i++) assert(gcd(want[i], 6) == exp[i]); }',
        '#include <stdlib.h>\nstruct stack { int n; };\ntypedef struct list { int value; struct list *next; } list;\nvoid reverse(const char *s, char *out) {}\nvoid bubble_sort(int *v, int n) {}\nstruct stack *stack_new(void) { return 0; }\nvoid stack_push(struct stack *s, int v) {}\nint stack_pop(struct stack *s) { return 1; }\nint stack_empty(struct stack *s) { return 1; }\nvoid stack_free(struct stack *s) {}\nlist *list_push(list *l, int v) { return l; }\nint list_len(list *l) { return 1; }\nint gcd(int a, int b) { return 1; }\n',
    ),
    (
        'python',
        "from answer import Stack, fib, flatten, Color, parse\ns = Stack()\ns.push(1)\nassert s.pop() == 1\nassert [fib(n) for n in range(4)] == [0, 1, 1, 2]\nassert flatten([1, [2]]) == [1, 2]\nassert parse('red') == Color.RED\nassert sorted(flatten([2, [1]])) == [1, 2]\nassert len(s) == 0\n",
        'from enum import Enum\nclass Color(Enum):\n    RED = 1\nclass Stack:\n    def __init__(self):\n        self.items = []\n    def push(self, x):\n        self.items.append(x)\n    def pop(self):\n        return self.items.pop()\n    def __len__(self):\n        return len(self.items)\ndef fib(n):\n    return n\ndef flatten(x):\n    return x\ndef parse(s):\n    return Color.RED\n',
    ),
    (
        'perl',
        "use Test::More tests => 3;\nuse lib '.';\nuse Counter;\nmy $c = Counter->new(start => 2);\n$c->inc;\nis($c->value, 3, 'value');\nis_deeply([Counter::uniq(1, 1, 2)], [1, 2], 'uniq');\nok(!$c->is_zero);\n",
        'package Counter;\nuse strict;\nsub new { my ($class, %a) = @_; return bless { n => $a{start} }, $class; }\nsub inc { $_[0]{n}++ }\nsub value { return $_[0]{n} }\nsub is_zero { return 0 }\nsub uniq { return @_ }\n1;\n',
    ),
    (
        'rust',
        '#[cfg(test)] mod tests { use super::*; #[test] fn a() { let mut s = Stack::new(); s.push(1); assert_eq!(s.pop(), Some(1)); assert_eq!(s.len(), 0); assert!(s.is_empty()); assert_eq!(parse("1"), Ok(1)); assert_eq!(parse(""), Err(ParseError::Empty)); assert_eq!(next(Light::Red), Light::Green); let t = Tree::from_iter([3, 1]); assert_eq!(t.sorted(), vec![1, 3]); assert_eq!(eval(&Expr::Add(Box::new(Expr::Num(1)), Box::new(Expr::Num(2)))), 3); assert_eq!(word_count("a").get("a"), Some(&1)); } }',
        '#[derive(Debug, PartialEq)] pub enum ParseError { Empty } #[derive(Debug, PartialEq)] pub enum Light { Red, Green } pub enum Expr { Num(i32), Add(Box<Expr>, Box<Expr>) } pub struct Stack<T> { v: Vec<T> } impl<T> Stack<T> { pub fn new() -> Self { Stack { v: vec![] } } pub fn push(&mut self, x: T) { self.v.push(x) } pub fn pop(&mut self) -> Option<T> { self.v.pop() } pub fn len(&self) -> usize { self.v.len() } pub fn is_empty(&self) -> bool { true } } pub struct Tree; impl FromIterator<i32> for Tree { fn from_iter<I: IntoIterator<Item = i32>>(i: I) -> Self { Tree } } impl Tree { pub fn sorted(&self) -> Vec<i32> { vec![] } } pub fn parse(s: &str) -> Result<i32, ParseError> { Ok(1) } pub fn next(l: Light) -> Light { l } pub fn eval(e: &Expr) -> i32 { 3 } pub fn word_count(s: &str) -> std::collections::HashMap<String, u32> { Default::default() }',
    ),
)  # fmt: skip
"""The language, tests with plain data and an answer of functions and classes as models write them."""
