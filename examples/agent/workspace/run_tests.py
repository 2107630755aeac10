"""Runs every test_*.py here, and writes what came of it to results.tap: the plan first, then one line per test."""

import sys
import unittest


class Tap(unittest.TestResult):
    def __init__(self, report):
        super().__init__()
        self.report = report
        self.number = 0

    def tell(self, word, test, why=""):
        self.number += 1
        print(f"{word} {self.number} - {test.id()}", file=self.report)
        if why:
            print(f"# {why}", file=self.report)
        print(word, test.id(), why)

    def addSuccess(self, test):
        self.tell("ok", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.tell("not ok", test, f"{error[0].__name__}: {error[1]}".splitlines()[0])

    addError = addFailure


def flat(suite):
    for test in suite:
        yield from flat(test) if isinstance(test, unittest.TestSuite) else [test]


found = list(flat(unittest.defaultTestLoader.discover(".")))
with open("results.tap", "w", buffering=1) as report:
    print(f"1..{len(found)}", file=report)
    result = Tap(report)
    for test in found:
        test.run(result)
sys.exit(not result.wasSuccessful())
