"""What test runners print is read as they mean it, and hostile output never passes."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from steelyard import records
from steelyard.verifiers.command.output import error_line
from steelyard.verifiers.command.results import RESULT_PARSERS, parse_results
from steelyard.verifiers.command.text_results import (
    MAX_REPORTED_TESTS,
    MAX_RESULTS_BYTES,
    ForgedResultsError,
    UnreadableResultsError,
)


def outcomes(output: str | bytes, kind: str) -> dict[str, str]:
    return {
        test.name: test.outcome for test in parse_results(output.encode() if isinstance(output, str) else output, kind)
    }


def messages(output: str, kind: str) -> dict[str, str]:
    return {test.name: test.message for test in parse_results(output.encode(), kind) if test.message}


def passes(output: str | bytes, kind: str) -> bool:
    """Whether an attempt with this output could pass."""
    try:
        found = list(outcomes(output, kind).values())
    except (UnreadableResultsError, ForgedResultsError):
        return False
    return "passed" in found and "failed" not in found


NODE = """TAP version 13
# Subtest: adds
ok 1 - adds
  ---
  duration_ms: 1500
  ...
# Subtest: adds wrong
not ok 2 - adds wrong
  ---
  duration_ms: 1.675339
  location: '/tmp/t.mjs:4:1'
  error: |-
    Expected values to be strictly equal:

    3 !== 4

  code: 'ERR_ASSERTION'
  stack: |-
    ok 9 - not a result
  ...
# Subtest: d
    # Subtest: x
    ok 1 - x
      ---
      duration_ms: 1.8
      ...
    # Subtest: y
    ok 2 - y # SKIP
    # Subtest: z
    not ok 3 - z # TODO later
    1..3
ok 3 - d
  ---
  type: 'suite'
  ...
1..3
# tests 5
"""

LIBTEST = """
running 4 tests
test adds ... ok
test carries ... FAILED
test panics - should panic ... ok
test slow ... ignored, slow

failures:

---- carries stdout ----

thread 'carries' (27044) panicked at l.rs:2:23:
assertion `left == right` failed: no carry
  left: 2

failures:
    carries

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.23s

"""

LIBTEST_JSON = r"""{ "type": "suite", "event": "started", "test_count": 4 }
{ "type": "test", "event": "started", "name": "adds" }
{ "type": "test", "name": "adds", "event": "ok", "exec_time": 0.5 }
{ "type": "test", "event": "started", "name": "carries" }
{ "type": "test", "name": "carries", "event": "failed", "stdout": "\nthread 'carries' (27) panicked at l.rs:2:23:\nassertion failed\n" }
{ "type": "test", "name": "panics", "event": "ok" }
{ "type": "test", "name": "slow", "event": "ignored", "message": "slow" }
{ "type": "suite", "event": "failed", "passed": 2, "failed": 1, "ignored": 1, "measured": 0, "filtered_out": 0, "exec_time": 0.2 }
"""

GO = r"""{"Time":"2023-05-13T17:27:15Z","Action":"start","Package":"p"}
{"Time":"2023-05-13T17:27:15Z","Action":"run","Package":"p","Test":"TestAdd"}
{"Action":"output","Package":"p","Test":"TestAdd","Output":"=== RUN   TestAdd\n"}
{"Action":"run","Package":"p","Test":"TestAdd/small"}
{"Action":"run","Package":"p","Test":"TestAdd/large"}
{"Action":"output","Package":"p","Test":"TestAdd/large","Output":"    add_test.go:9: got 3, want 4\n"}
{"Action":"output","Package":"p","Test":"TestAdd/large","Output":"--- FAIL: TestAdd/large (0.00s)\n"}
{"Action":"pass","Package":"p","Test":"TestAdd/small","Elapsed":0.25}
{"Action":"fail","Package":"p","Test":"TestAdd/large","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestAdd","Elapsed":0}
{"Action":"run","Package":"p","Test":"TestSkip"}
{"Action":"skip","Package":"p","Test":"TestSkip","Elapsed":0}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":0.003}
"""

JEST = r"""{"numFailedTests":1,"numPassedTests":1,"numPendingTests":1,"numTotalTests":3,"success":false,"testResults":[
{"assertionResults":[
{"ancestorTitles":["sum"],"duration":2000,"failureMessages":[],"fullName":"sum adds","status":"passed","title":"adds"},
{"ancestorTitles":["sum"],"duration":null,"failureMessages":["Error: expect(received).toBe(expected)\n\n at x"],"status":"failed","title":"carries"},
{"ancestorTitles":[],"failureMessages":[],"status":"pending","title":"later"}],
"message":"","name":"/tmp/x/sum.test.js","status":"failed","summary":""}],"wasInterrupted":false}
"""

JUNIT = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="0"
failures="1" skipped="1" tests="3" time="0.112"><testcase classname="test_x" name="test_a" time="0.5" />
<testcase classname="test_x" name="test_b" time="0.005"><failure message="assert 1 == 2">&gt; def test_b()
</failure></testcase><testcase classname="test_x" name="test_c" time="0.000"><skipped type="pytest.skip"
message="unconditional skip">why</skipped></testcase></testsuite></testsuites>"""

MIXED = {
    "tap": (
        NODE,
        {"adds": "passed", "adds wrong": "failed", "d > x": "passed", "d > y": "ignored", "d > z": "ignored"},
    ),
    "libtest": (LIBTEST, {"adds": "passed", "carries": "failed", "panics": "passed", "slow": "ignored"}),
    "go": (GO, {"TestAdd/small": "passed", "TestAdd/large": "failed", "TestSkip": "ignored"}),
    "jest": (JEST, {"sum > adds": "passed", "sum > carries": "failed", "later": "ignored"}),
    "junit": (JUNIT, {"test_x > test_a": "passed", "test_x > test_b": "failed", "test_x > test_c": "ignored"}),
}


@pytest.mark.parametrize("kind", RESULT_PARSERS)
def test_every_format_tells_passed_failed_and_ignored_apart(kind: str) -> None:
    output, expected = MIXED[kind]
    assert outcomes(output, kind) == expected


def test_the_json_of_libtest_is_read_like_its_text() -> None:
    assert outcomes(LIBTEST_JSON, "libtest") == MIXED["libtest"][1]


@pytest.mark.parametrize(
    ("output", "kind", "name", "message"),
    [
        (NODE, "tap", "adds wrong", "Expected values to be strictly equal: 3 !== 4"),
        ('1..1\nnot ok 1 - a\n# got "3"\n', "tap", "a", 'got "3"'),
        ("1..1\nnot ok 1 - a\n  ---\n  message: 'got 3'\n  ...\n", "tap", "a", "got 3"),
        (LIBTEST, "libtest", "carries", "assertion `left == right` failed: no carry"),
        (LIBTEST_JSON, "libtest", "carries", "assertion failed"),
        (GO, "go", "TestAdd/large", "add_test.go:9: got 3, want 4"),
        (JEST, "jest", "sum > carries", "Error: expect(received).toBe(expected)"),
        (JUNIT, "junit", "test_x > test_b", "assert 1 == 2"),
    ],
)
def test_a_failed_test_says_why(output: str, kind: str, name: str, message: str) -> None:
    assert messages(output, kind)[name] == message


@pytest.mark.parametrize(
    ("output", "kind", "seconds"),
    [(NODE, "tap", 1.5), (LIBTEST_JSON, "libtest", 0.5), (GO, "go", 0.25), (JEST, "jest", 2), (JUNIT, "junit", 0.5)],
)
def test_a_test_says_how_long_it_took(output: str, kind: str, seconds: float) -> None:
    assert parse_results(output.encode(), kind)[0].seconds == seconds


def test_what_pytest_writes_as_junit_is_read(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("def test_a(): pass\ndef test_b(): assert 1 == 2\n")
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", "-p", "no:cacheprovider", "test_x.py"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert outcomes(report.read_bytes(), "junit") == {"test_x > test_a": "passed", "test_x > test_b": "failed"}


@pytest.mark.parametrize("kind", RESULT_PARSERS)
@pytest.mark.parametrize("output", ["", "\n\n", "Segmentation fault\n", "passed\n"])
def test_no_results_are_no_pass(kind: str, output: str) -> None:
    assert not passes(output, kind)


CUT = {
    "tap": "1..2\nok 1 - a\nok 2 - b\n",
    "libtest": "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n",
    "go": '{"Action":"run","Package":"p","Test":"TestA"}\n{"Action":"pass","Package":"p","Test":"TestA"}\n'
    '{"Action":"run","Package":"p","Test":"TestB"}\n{"Action":"pass","Package":"p","Test":"TestB"}\n'
    '{"Action":"pass","Package":"p"}\n',
    "jest": '{"success":true,"numTotalTests":1,"numFailedTests":0,"testResults":[{"assertionResults":'
    '[{"title":"a","status":"passed"}],"status":"passed"}]}\n',
    "junit": '<testsuites><testsuite name="s" tests="2"><testcase name="a"/><testcase name="b"/></testsuite></testsuites>',
}


ENOUGH = {"tap": "ok 2", "libtest": "0 ignored;"}
"""What must be there of the last line; nothing where all of it must."""


@pytest.mark.parametrize("kind", RESULT_PARSERS)
def test_results_that_are_cut_off_anywhere_are_no_pass(kind: str) -> None:
    output = CUT[kind].rstrip()
    assert passes(output, kind)
    enough = output.index(ENOUGH[kind]) + 2 if kind in ENOUGH else len(output)
    assert [end for end in range(enough) if passes(output[:end], kind)] == []


def test_a_suite_of_libtest_must_end_as_its_tests_did() -> None:
    for ending in (
        "",
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n",
        "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n",
    ):
        assert not passes(f"running 2 tests\ntest a ... ok\ntest b ... ok\n{ending}", "libtest")
    assert not passes("running 3 tests\ntest a ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; x\n", "libtest")
    started = '{"type":"suite","event":"started","test_count":2}\n{"type":"test","name":"a","event":"ok"}\n'
    assert not passes(started, "libtest")
    assert not passes(started + '{"type":"suite","event":"ok","passed":1}\n', "libtest")
    assert passes(
        started + '{"type":"test","name":"b","event":"ok"}\n{"type":"suite","event":"ok","passed":2}\n', "libtest"
    )


def test_two_crates_may_have_a_test_of_the_same_name() -> None:
    suite = "running 1 test\ntest works ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n"
    assert outcomes(suite + suite, "libtest") == {"works": "passed", "works (suite 2)": "passed"}


@pytest.mark.parametrize(
    ("output", "planned"),
    [
        ("ok 1 - a\n", "no plan"),
        ("1..3\nok 1 - a\n", "3 tests planned, 1 ran"),
        ("ok 1 - a\n1..2\n", "2 tests planned, 1 ran"),
        ("    ok 1 - a\n    1..2\nok 1 - suite\n1..1\n", "2 tests planned, 1 ran"),
    ],
)
def test_a_plan_must_be_there_and_be_kept(output: str, planned: str) -> None:
    assert not passes(output, "tap")
    assert planned in str(messages(output, "tap"))


@pytest.mark.parametrize(
    "output",
    [
        "1..1\nok 1 - a\nBail out! no database\n",
        "1..1\nok 1 - a\n  ---\n  error: x\n",
        "1..1\nok 1 - a\n    ok 1 - b\n    1..1\n",
        "    not ok 1 - a\n    1..1\nok 1 - suite\n1..1\n",
        "    ok 1 - a\n    1..1\nnot ok 1 - suite\n1..1\n",
        "1..0 # SKIP nothing to do\n",
        "1..1\nok 1 - a # skip\n",
        "1..1\nok 1 # TODO\n",
        "1..1\nokay\n",
        "1..1\n  ok 1 - a\n",
        "1..99999999999999999999\nok 1\n",
    ],
)
def test_tap_that_is_not_plainly_all_right_is_no_pass(output: str) -> None:
    assert not passes(output, "tap")


@pytest.mark.parametrize(
    ("output", "kind", "evidence"),
    [
        ("1..2\nok 1 - a\nok 2 - a\n", "tap", '2 results for the test "a"'),
        ("1..2\nok 1 - a\nok 1 - b\n", "tap", "number 1"),
        ("ok 1 - a\n1..1\nok 2 - b\n", "tap", "after the plan"),
        ("1..1\nok 1 - a\nok 2 - b\n", "tap", "more results"),
        ("1..1\nok 1 - a\n1..1\nnot ok 1 - a\n", "tap", "two plans"),
        ("1..1\nok 1 - not ok 1 - a\n", "tap", "one line"),
        *((f"1..1\nok 1 - a\n{hidden}not ok 1 - a\n", "tap", "behind other text") for hidden in ("# ", "x", "  ")),
        ("1..1\nok - a\n# not ok - a\n", "tap", "behind other text"),
        ("1..2\nok 1 - a\n  ---\nnot ok 1 - a\n  ...\nok 2 - b\n", "tap", "behind other text"),
        (CUT["libtest"] + "test c ... ok\n", "libtest", "outside"),
        (CUT["libtest"] + "test result: ok. 2 passed; 0 failed; 0 ignored; x\n", "libtest", "not begun"),
        ("running 1 test\n" + CUT["libtest"], "libtest", "before"),
        ("running 2 tests\ntest a ... ok\ntest a ... FAILED\n", "libtest", "two results"),
        (LIBTEST_JSON + '{"type":"test","name":"z","event":"ok"}\n', "libtest", "after"),
        (CUT["go"] + '{"Action":"run","Package":"p","Test":"TestC"}\n', "go", "after its end"),
        ('{"Action":"pass","Package":"p","Test":"TestA"}\n', "go", "does not run"),
        ('{"Action":"run","Test":"A"}\n{"Action":"pass","Test":"A"}\n{"Action":"fail","Test":"A"}\n', "go", "result"),
        (CUT["jest"] + CUT["jest"], "jest", "after the end"),
        ('<testsuite><testcase name="a"/><testcase name="a"><failure/></testcase></testsuite>', "junit", "2 results"),
    ],
)
def test_results_that_no_honest_runner_prints_are_evidence_of_forgery(output: str, kind: str, evidence: str) -> None:
    with pytest.raises(ForgedResultsError, match=evidence):
        parse_results(output.encode(), kind)


def test_a_summary_of_tap_hides_no_result() -> None:
    assert passes("1..2\nok 1 - a\nok 2 - b\n# ok 2\n# not ok 0\n# 0 not ok\n", "tap")
    assert outcomes("1..2\nok 1 - a\nnot ok 2 - b\n# not ok 1\n", "tap") == {"a": "passed", "b": "failed"}


def test_what_java_says_about_our_options_is_no_reason() -> None:
    printed = "Picked up JAVA_TOOL_OPTIONS: -Xmx512m\nwrong: 9\n"
    assert error_line(printed) == "wrong: 9"


@pytest.mark.parametrize(
    "output",
    [
        '{"Action":"run","Package":"p","Test":"TestA"}\n{"Action":"pass","Package":"p"}\n',
        '{"Action":"run","Package":"p","Test":"TestA"}\n{"Action":"pass","Package":"p","Test":"TestA"}\n',
        CUT["go"].replace('"pass","Package":"p"}', '"fail","Package":"p"}'),
        CUT["go"].replace('{"Action":"pass","Package":"p"}', "FAIL p [build failed]"),
        '{"Action":"output","Package":"p","Output":"? p [no test files]"}\n{"Action":"skip","Package":"p"}\n',
        (
            '{"Action":"run","Package":"p","Test":"A"}\n{"Action":"run","Package":"p","Test":"A/b"}\n'
            '{"Action":"pass","Package":"p","Test":"A/b"}\n{"Action":"fail","Package":"p","Test":"A"}\n'
        ),
    ],
)
def test_go_packages_must_end_well_and_so_must_all_their_tests(output: str) -> None:
    assert not passes(output, "go")


def test_go_packages_are_told_apart() -> None:
    output = CUT["go"] + CUT["go"].replace('"p"', '"q"')
    assert list(outcomes(output, "go")) == ["p > TestA", "p > TestB", "q > TestA", "q > TestB"]


@pytest.mark.parametrize(
    "change",
    [
        ('"success":true', '"success":false'),
        ('"numTotalTests":1', '"numTotalTests":2'),
        ('"numFailedTests":0', '"numFailedTests":1'),
        ('"status":"passed"}]', '"status":"unheard of"}]'),
        ('],"status":"passed"', '],"status":"failed"'),
        ('"title":"a",', ""),
        ("{", "[", 1),
    ],
)
def test_a_jest_report_that_contradicts_itself_is_no_pass(change: tuple[str, str]) -> None:
    assert passes(CUT["jest"], "jest")
    assert not passes(CUT["jest"].replace(*change), "jest")


@pytest.mark.parametrize(
    "output",
    [
        '<testsuite tests="2"><testcase name="a"/></testsuite>',
        '<testsuite failures="1"><testcase name="a"/></testsuite>',
        '<testsuites errors="1"><testsuite><testcase name="a"/></testsuite></testsuites>',
        '<testsuite tests="x"><testcase name="a"/></testsuite>',
        '<testsuite><testcase name="a"><error/></testcase></testsuite>',
        '<testsuite><testcase name="a"><failure/><skipped/></testcase></testsuite>',
        '<testsuite><testcase name="a"><skipped/><failure/></testcase></testsuite>',
        '<testsuite><testcase name="a" status="notrun"/></testsuite>',
        '<testsuite><testcase name="a" status="fail"/></testsuite>',
        '<testsuite><testcase name="a"><testcase name="b"/></testcase></testsuite>',
        '<html><testcase name="a"/></html>',
        '<testsuite><testcase name="a"/></testsuite><testsuite/>',
        'noise<testsuite><testcase name="a"/></testsuite>',
        '<testsuite><testcase name="&undefined;"/></testsuite>',
        '<testsuite><testcase name="\x01"/></testsuite>',
    ],
)
def test_junit_that_is_not_plainly_all_right_is_no_pass(output: str) -> None:
    assert not passes(output, "junit")


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    "output",
    [
        f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]><testsuite><testcase name="&l11;"/></testsuite>',
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><testsuite><testcase name="a">&f;</testcase></testsuite>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd"><testsuite><testcase name="a"/></testsuite>',
        '<!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><testsuite><testcase name="a"/></testsuite>',
    ],
)
def test_xml_with_a_document_type_is_refused(output: str) -> None:
    with pytest.raises(UnreadableResultsError, match="document type"):
        parse_results(output.encode(), "junit")


def test_xml_cannot_choose_an_encoding_that_hides_what_it_says() -> None:
    assert not passes('<?xml version="1.0" encoding="utf-16"?><testsuite/>'.encode("utf-16"), "junit")
    assert not passes(b'<?xml version="1.0" encoding="utf-7"?><testsuite/>', "junit")


MONSTERS = {
    "too long": (b"#" * (MAX_RESULTS_BYTES + 1), "tap"),
    "deep XML": (b"<testsuite>" * 300_000, "junit"),
    "deep JSON": (b'{"testResults":' + b"[" * 3_000_000, "jest"),
    "deep lines": (b"[" * 3_000_000, "go"),
    "deep TAP": (b"".join(b" " * 4 * n + b"ok 1\n" for n in range(1000)), "tap"),
    "many TAP": (b"ok\n" * 1_000_000, "tap"),
    "many XML": (b"<testsuite>" + b'<testcase name="a"/>' * 200_000, "junit"),
    "many libtest": (b"running 9 tests\n" + b"".join(b"test %d ... ok\n" % n for n in range(150_000)), "libtest"),
    "many go": (b"".join(b'{"Action":"run","Test":"%d"}\n' % n for n in range(100_000)), "go"),
    "slashes": (b'{"Action":"run","Test":"%s"}\n' % (b"/" * 3_000_000), "go"),
    "long attribute": (b'<testsuite><testcase name="' + b"a" * 3_000_000 + b'"/></testsuite>', "junit"),
    "blanks": (b"ok 1 - " + b" #" * 1_000_000, "tap"),
    "dots": (b"running 1 test\ntest " + b" ... " * 800_000 + b"\n", "libtest"),
    "digits": (b"1.." + b"9" * 3_000_000, "tap"),
}


@pytest.mark.parametrize("name", MONSTERS)
def test_monstrous_output_is_read_or_refused_in_no_time(name: str) -> None:
    output, kind = MONSTERS[name]
    began = time.process_time()
    try:
        found = parse_results(output, kind)
    except (UnreadableResultsError, ForgedResultsError):
        found = []
    assert time.process_time() - began < 5
    assert len(found) <= MAX_REPORTED_TESTS + 1
    assert all(len(test.name) <= 300 and len(test.message) <= 2000 for test in found)


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ('<testsuite><testcase name="a" time="inf"/></testsuite>', "junit"),
        ('<testsuite><testcase name="a" time="nan"/></testsuite>', "junit"),
        ('<testsuite><testcase name="a" time="1_0"/><testcase name="b" time="x"/></testsuite>', "junit"),
        ("1..1\nok 1 - a\n  ---\n  duration_ms: inf\n  ...\n", "tap"),
        (CUT["jest"].replace('"title":"a"', '"title":"a","duration":1e308'), "jest"),
        (CUT["jest"].replace('"title":"a"', '"title":"\\ud83d\\ude00"'), "jest"),
        (b"1..1\nok 1 - \xff\xfe\xed\xa0\x80\n", "tap"),
    ],
)
def test_whatever_is_read_can_be_stored(output: str | bytes, kind: str) -> None:
    found = parse_results(output.encode() if isinstance(output, str) else output, kind)
    assert found
    assert msgspec.json.decode(msgspec.json.encode(found), type=list[records.Test]) == found


def test_damaged_output_never_breaks_a_reader() -> None:
    chance = random.Random(7)
    originals = [(kind, output.encode()) for kind, (output, _) in MIXED.items()] + [("libtest", LIBTEST_JSON.encode())]
    for kind, output in originals * 150:
        damaged = bytearray(output)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.randint(0, 9)] = bytes(chance.choices(b'"{}[]<>&/\n \\u0d8\x00\xff1.ok', k=3))
        try:
            msgspec.json.encode(parse_results(bytes(damaged), kind))
        except (UnreadableResultsError, ForgedResultsError):
            continue
