"""A small agent: asks a model for edits of the files in its folder, makes them, runs the tests, and tells the model.

The task comes on standard input. OPENAI_BASE_URL and OPENAI_API_KEY say whom to ask. The last line it prints is JSON: the
tokens that all rounds took together.

    echo "Make the tests pass." | python agent.py --model gpt-5-mini --test "python3 run_tests.py"
"""

import argparse
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

HOW = """You work on the files of a small project. Answer with one JSON object and nothing else:
{"files": {"path/of/file.py": "its whole new content", "path/to/be/removed.py": null}}
Name only files that you change. Change as little as the task needs."""
LARGEST = 32_000
"""Characters of a file, and of what the tests print, that the model is shown."""


def project() -> dict[str, str]:
    """The text files of this folder."""
    found = {}
    for path in sorted(Path().rglob("*")):
        if (
            path.is_symlink()
            or not path.is_file()
            or any(part[0] == "." or part == "__pycache__" for part in path.parts)
        ):
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if len(text) <= LARGEST:
            found[str(path)] = text
    return found


def ask(messages: list[dict[str, str]], model: str) -> tuple[str, dict[str, int]]:
    """What the model says, and the tokens it took."""
    base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
    request = urllib.request.Request(
        f"{base}/chat/completions",
        json.dumps({"model": model, "messages": messages}).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"},
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        said = json.load(response)
    return said["choices"][0]["message"]["content"] or "", said.get("usage") or {}


def edits(reply: str) -> dict[str, str | None]:
    """The files that a reply wants to be otherwise; raises ValueError when it says nothing that can be understood."""
    said: Any = json.loads(reply[reply.find("{") : reply.rfind("}") + 1])
    files = said.get("files") if isinstance(said, dict) else None
    if not isinstance(files, dict) or not all(text is None or isinstance(text, str) for text in files.values()):
        raise ValueError('no object "files" of texts')
    for name in files:
        if not Path(name).resolve().is_relative_to(Path.cwd()):
            raise ValueError(f"{name} is not in this folder")
    return files


def make(files: dict[str, str | None]) -> None:
    """Write and remove files."""
    for name, text in files.items():
        path = Path(name)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        print("removed" if text is None else "wrote", name, flush=True)


def tested(command: str) -> tuple[bool, str]:
    """Whether the tests pass, and what they print."""
    try:
        ran = subprocess.run(
            command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        return False, "the tests took more than two minutes"
    return ran.returncode == 0, ran.stdout.decode("utf-8", "replace")[-LARGEST:]


def main() -> int:
    """Work until the tests pass, or for as many rounds as are allowed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--test", default="", help="a command that ends with 0 when all is well")
    parser.add_argument("--rounds", type=int, default=3, help="how often the model is asked at most")
    given = parser.parse_args()
    shown = "\n\n".join(f"=== {name}\n{text}" for name, text in project().items())
    task = f"{sys.stdin.read().strip()}\n\nThe files are:\n\n{shown}"
    messages = [{"role": "system", "content": HOW}, {"role": "user", "content": task}]
    total: dict[str, int] = {}
    well = False
    for number in range(1, given.rounds + 1):
        reply, used = ask(messages, given.model)
        for name in ("prompt_tokens", "completion_tokens"):
            if isinstance(used.get(name), int):
                total[name] = total.get(name, 0) + used[name]
        messages.append({"role": "assistant", "content": reply})
        try:
            make(edits(reply))
        except ValueError as error:
            said = f"That could not be read: {error}. Answer with the JSON object alone."
        else:
            well, output = tested(given.test) if given.test else (True, "")
            print(f"round {number}: {'all is well' if well else 'tests fail'}", flush=True)
            if well:
                break
            said = f"The tests say:\n\n{output}\n\nAnswer with JSON again, for the files that must change now."
        messages.append({"role": "user", "content": said})
    print(json.dumps({"usage": total}))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
