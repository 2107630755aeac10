"""Files in messages: found beside the eval set, bounded, and part of the question by their bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard import evalsets
from steelyard.errors import InputError
from steelyard.records import Attempt, Case, ContentPart, Message


def loaded(folder: Path, part: str) -> Case:
    (folder / "set.toml").write_text(
        f"""[eval_set]
id = "s"
name = "S"
[[cases]]
id = "c"
name = "C"
target = "x"
[[cases.prompt]]
role = "user"
content = [{{ type = "text", text = "What is it?" }}, {part}]
"""
    )
    (case,) = evalsets.load([folder / "set.toml"]).cases
    return case


def test_a_file_is_part_of_the_question_by_its_bytes_and_not_by_its_place(tmp_path: Path) -> None:
    keys = []
    for name, content in (("a", b"one"), ("b", b"one"), ("c", b"two")):
        folder = tmp_path / name
        (folder / "pictures").mkdir(parents=True)
        (folder / "pictures" / "cat.png").write_bytes(content)
        case = loaded(folder, '{ type = "image", path = "pictures/cat.png" }')
        assert case.messages[0].text == "What is it?\n\n[image: cat.png]"
        assert Path(case.messages[0].parts[1].path).read_bytes() == content
        keys.append(Attempt(case=case, model="p/m").key)
    assert keys[0] == keys[1] != keys[2]


def test_messages_of_text_keep_the_keys_that_they_have_always_had() -> None:
    talk = (Message(role="system", content="Be brief."), Message(role="user", content="Say hi."))
    assert Attempt(case=Case(id="c", prompt="Say hi."), model="p/m").key == "bd26534c33474b0df65fbe1b5a7ed540"
    assert (
        Attempt(case=Case(id="c", prompt=talk), model="p/m", parameters={"seed": 1}, number=2).key
        == "be25c8d4e9c922ff7e4883d9d58962fe"
    )
    assert Attempt(case=Case(id="c", prompt=talk), model="p/m").asked == "d58db99a3b67cecc17452049b6156cd7"


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ('{ type = "image", path = "../cat.png" }', "must be beside the eval set"),
        ('{ type = "image", path = "/etc/hostname" }', "must be beside the eval set"),
        ('{ type = "image", path = "out/cat.png" }', "must be beside the eval set"),
        ('{ type = "image", path = "none.png" }', "cannot be read"),
        ('{ type = "image", path = "folder" }', "not a regular file"),
        ('{ type = "image", url = "http://example.com/cat.png" }', "https://"),
        ('{ type = "image", path = "a", url = "https://b" }', "a path or a url"),
        ('{ type = "file" }', "a path or a url"),
        ('{ type = "text", path = "a" }', 'type "text" has text'),
        ('{ type = "video", path = "a" }', "video"),
    ],
)
def test_a_part_that_names_no_file_beside_the_set_is_refused(tmp_path: Path, part: str, reason: str) -> None:
    folder = tmp_path / "set"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "cat.png").write_bytes(b"")
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(InputError, match=reason):
        loaded(folder, part)


def test_a_url_is_left_to_the_provider(tmp_path: Path) -> None:
    case = loaded(tmp_path, '{ type = "image", url = "https://example.com/cat.png" }')
    assert case.messages[0].parts[1] == ContentPart(type="image", url="https://example.com/cat.png")
