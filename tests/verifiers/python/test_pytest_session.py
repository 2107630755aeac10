"""Files of pytest run in a session that was begun before there was an answer, exactly as pytest itself would run them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

FILES = {
    "fixtures": """
import logging, os, unittest, warnings
import pytest
@pytest.fixture
def five(): return 5
@pytest.fixture(scope="module", autouse=True)
def around(tmp_path_factory): yield
def test_own(five): assert five == 5
def test_folder(tmp_path): (tmp_path / "x").write_text("y")
def test_printed(capsys):
    print("hi")
    assert capsys.readouterr().out == "hi\\n"
def test_logged(caplog):
    logging.getLogger().warning("w")
    assert caplog.records
def test_warned(recwarn):
    warnings.warn("x")
    assert len(recwarn) == 1
@pytest.mark.parametrize("n", [1, 2, 3])
def test_each(n): assert n < 3
@pytest.mark.xfail
def test_expected(): assert False
@pytest.mark.xfail(strict=True)
def test_unexpected(): assert True
@pytest.mark.skip(reason="no")
def test_skipped(): pass
def test_later(): pytest.skip("later")
class TestClass:
    def setup_method(self): self.x = 1
    def test_method(self): assert self.x == 1
class TestCase(unittest.TestCase):
    def test_right(self): self.assertEqual(1, 1)
    def test_wrong(self): self.assertEqual(1, 2)
def test_without_fixture(unknown): pass
def test_place(request):
    assert request.path.parent == request.session.startpath == request.node.session.path
    assert str(request.session.startpath) == os.getcwd() and request.node.nodeid.endswith("::test_place")
""",
    "cannot be loaded": "import nowhere\n",
    "empty": "",
    "skipped as a whole": "import pytest\npytest.skip('x', allow_module_level=True)\n",
    "ended from within": "import pytest\ndef test_one(): pytest.exit('bye')\ndef test_two(): pass\n",
    "interrupted": "def test_one(): raise KeyboardInterrupt\n",
}
SCRIPT = """
import json, os, sys, types
from steelyard.verifiers.python.guest import runners
def told(source, is_before):
    heard = []
    def load():
        module = types.ModuleType("test_answer")
        exec(compile(source, runners.TESTS_FILE, "exec"), module.__dict__)
        return module
    if not is_before:
        runners.end_session()
    try:
        runners.run_pytest(load, source, lambda line: heard.append(line._replace(seconds=0)))
    except BaseException as error:
        heard.append(repr(error))
    return heard
assert len(runners._SESSIONS) == 1
for name, source in json.load(sys.stdin).items():
    for is_before in (True, False):
        sys.stdout.flush()
        if os.fork() == 0:
            print("told", json.dumps([name, told(source, is_before)]), flush=True)
            os._exit(0)
        os.wait()
"""


def test_a_session_that_was_begun_before_hears_the_same_of_every_test(tmp_path: Path) -> None:
    program = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(program, cwd=tmp_path, input=json.dumps(FILES), capture_output=True, text=True, check=True)
    lines = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("told ")]
    assert lines[::2] == lines[1::2]
    assert [name for name, _ in lines[::2]] == list(FILES)
    told = dict(lines)
    outcomes = [line[1] for line in told["fixtures"] if isinstance(line, list)]
    assert Counter(outcomes) == {"passed": 10, "failed": 4, "expected": 1, "skipped": 2}
    assert "No module named 'nowhere'" in told["cannot be loaded"][-1]
