"""What an answer changes beside its tests is noticed by the number of a change, and tests are compiled once for each case."""

from __future__ import annotations

import json
import subprocess
import sys

from steelyard.verifiers.python.guest.test_rewriter import repeatable_code, rewritten_code

CHANGES = (
    *("held['a'] = 1", "held['a'] = 2", "held['b'] = 2", "del held['a']", "held.pop('b')", "held.update(x=1)"),
    *("held.setdefault('y', 2)", "held.popitem()", "held |= {'q': 1}", "held.__init__(q=3)", "held.clear()"),
    *("module.name = 1", "module.name = 2", "del module.name", "kind.name = 1", "kind.name = str", "del kind.name"),
)
SCRIPT = """
import json, sys, types
from steelyard.verifiers.python.guest import genuine
held, module, kind = {}, types.ModuleType("module"), type("kind", (), {})
watch = genuine.DictWatch([held, vars(module), genuine.own_dict(kind)])
found = []
for change in json.loads(sys.argv[1]):
    assert not genuine.NUMBERS_CHANGES or not watch.changed(), change
    exec(change)
    found.append(list(watch.changed()))
    watch.look()
print(json.dumps([genuine.NUMBERS_CHANGES, found]))
"""
TESTS = "def test_it():\n    assert double(2) == 4\n"


def test_each_way_to_change_a_module_or_a_class_is_noticed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(CHANGES)], stdout=subprocess.PIPE, text=True, check=True
    )
    numbers_changes, found = json.loads(done.stdout)
    assert numbers_changes is (sys.version_info < (3, 14))
    for change, places in zip(CHANGES, found, strict=True):
        changed = next(place for place, name in enumerate(("held", "module", "kind")) if name in change)
        assert changed in places, change


def test_tests_are_compiled_again_for_an_interpreter_of_another_version() -> None:
    first, packed = repeatable_code(lambda: rewritten_code(TESTS), "")
    again, nothing = repeatable_code(lambda: rewritten_code(TESTS), packed)
    assert (again, nothing) == (first, "")
    other, made = repeatable_code(lambda: rewritten_code(TESTS), "bm90IGl0cyBudW1iZXI=")
    assert other is not None
    assert made


def test_tests_that_do_not_compile_are_left_to_whoever_runs_them() -> None:
    assert repeatable_code(lambda: rewritten_code("def"), "") == (None, "")
