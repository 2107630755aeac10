"""The files that agents work on: read from a folder or a commit, copied, and compared with what became of them.

Only the standard library is used: the process that keeps an agent loads this module in a bare interpreter.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from steelyard.errors import InputError
from steelyard.text import printable

MAX_WORKSPACE_FILES = 10_000
MAX_WORKSPACE_BYTES = 64 << 20
"""What a workspace may hold: a copy of it is made for every attempt, and one more for every verdict."""
MAX_CHANGED_BYTES = 16 << 20
"""Bytes of changed files that fit into a patch."""
MAX_PATCH_CHARACTERS = 32 << 20
GIT_TIMEOUT_SECONDS = 60
"""Seconds that git may take for any one thing."""
MAX_GIT_OUTPUT_BYTES = 256 << 20
"""Bytes that git may print: a small repository can list more files than there is memory for."""
MAX_PATH_BYTES = 4096
"""Bytes of a path that other programs can still open."""
GIT_MODE_FILE, GIT_MODE_EXECUTABLE, GIT_MODE_SYMLINK = "100644", "100755", "120000"
"""What a file is, in the words of git."""
EXCLUDED_FOLDERS = frozenset({".git", "__pycache__"})
"""Folders that are not part of a workspace: neither the history of the files nor what Python remembers of them."""
GIT_MISSING_MESSAGE = "git is not installed; get it with: apt install git, brew install git, or your system's package (see steelyard doctor)"
GIT_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
}
"""The environment of git: no settings of a user, no hooks and no questions."""


class GitFile(NamedTuple):
    """A file as git sees it."""

    content: bytes
    """For a link the path that it points to."""
    mode: str = GIT_MODE_FILE


WorkspaceFiles = Mapping[str, GitFile]
"""The files of a workspace by their paths in it; as in git, an empty folder is nothing."""


class WorkspaceChange(NamedTuple):
    """What became of a workspace."""

    patch: str
    """Empty when nothing changed."""
    left_out: tuple[str, ...]
    """The files that no patch could hold, and why: their sizes."""


# ---- where a workspace is


def resolve_workspace(workspace: str, beside: Path) -> str:
    """The same workspace with an absolute path, and its commit by its full name; raises InputError when it is not there."""
    folder, commit = _split_commit(str(beside / workspace))
    if not folder.is_dir():
        raise InputError(f"{printable(str(folder))} is not a folder; name one beside the file, or FOLDER@COMMIT")
    if not commit:
        return os.path.abspath(folder)  # noqa: PTH100  not resolve: the user's own names for things stay
    if commit.startswith("-"):
        raise InputError(f"{printable(commit)} is not the name of a commit")
    if not _is_in_repository(folder):
        raise InputError(f"{printable(str(folder))} is in no git repository, so it has no commit {printable(commit)}")
    try:
        full = git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", within=folder)
    except InputError:
        raise InputError(f"no commit {printable(commit)} in {printable(str(folder))}") from None
    return f"{os.path.abspath(folder)}@{full.decode().strip()}"  # noqa: PTH100


def _split_commit(workspace: str) -> tuple[Path, str]:
    """The folder and the commit of FOLDER@COMMIT; a folder that is called so is a folder."""
    folder, at, commit = workspace.rpartition("@")
    is_commit = bool(at and folder and commit) and not Path(workspace).is_dir()
    return (Path(folder), commit) if is_commit else (Path(workspace), "")


def _is_in_repository(folder: Path) -> bool:
    try:
        git("rev-parse", "--git-dir", within=folder)
    except InputError:
        if shutil.which("git") is None:
            raise
        return False
    return True


# ---- what is in it


def workspace_files(workspace: str) -> dict[str, GitFile]:
    """The files of a folder or of FOLDER@COMMIT; an empty name means an empty folder."""
    if not workspace:
        return {}
    folder, commit = _split_commit(workspace)
    if not folder.is_dir():
        raise InputError(f"{printable(str(folder))} is no longer a folder")
    found = dict(sorted(_committed(folder, commit) if commit else _in_folder(folder)))
    for path in found:
        above = next((str(parent) for parent in Path(path).parents if str(parent) in found), "")
        if above:
            raise InputError(f"{printable(workspace)}: {printable(above)} is a file and a folder at the same time")
    return found


def workspace_digest(found: WorkspaceFiles) -> str:
    """Equal for equal files, in any folder."""
    total = hashlib.blake2b(digest_size=16)
    for path, file in sorted(found.items()):
        content = hashlib.blake2b(file.content, digest_size=16).hexdigest()
        total.update(b"%s\0%s %s\n" % (os.fsencode(path), file.mode.encode(), content.encode()))
    return total.hexdigest()


def _in_folder(folder: Path) -> Iterator[tuple[str, GitFile]]:
    """The entries of a folder; links are not followed, and special files are skipped."""
    count = size = 0
    for path in _file_paths(folder):
        file = read_file(folder, path, MAX_WORKSPACE_BYTES - size)
        if file is None:
            continue
        count, size = count + 1, size + len(file.content)
        _check_workspace_size(count, size, folder)
        yield path, file


def _file_paths(folder: Path, below: str = "") -> Iterator[str]:
    """The paths of everything below a folder except folders."""
    waiting = [below]
    while waiting:
        here = waiting.pop()
        try:
            entries = list(os.scandir(folder / here))
        except OSError as error:
            raise InputError(f"{printable(str(folder / here))} cannot be read: {error.strerror}") from None
        for entry in entries:
            path = f"{here}/{entry.name}" if here else entry.name
            if entry.name.lower() in EXCLUDED_FOLDERS:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                yield path


def read_file(folder: Path, path: str, most: int) -> GitFile | None:
    """One file of a folder, reached through no link; None when it is not there, or neither file nor link."""
    place = folder / path
    if len(os.fsencode(place)) >= MAX_PATH_BYTES:
        return None
    try:
        with _opened_above(folder, path) as (above, name):
            about = os.stat(name, dir_fd=above, follow_symlinks=False)
            if stat.S_ISLNK(about.st_mode):
                return GitFile(os.fsencode(os.readlink(name, dir_fd=above)), GIT_MODE_SYMLINK)
            if not stat.S_ISREG(about.st_mode):
                return None
            if about.st_size > most:
                raise InputError(f"{printable(str(folder))}: {_too_large()}")
            with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above), "rb") as opened:  # noqa: PTH123  a number
                content = opened.read(most + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            return None
        raise InputError(f"{printable(str(place))} cannot be read: {error.strerror}") from None
    return GitFile(content, GIT_MODE_EXECUTABLE if about.st_mode & stat.S_IXUSR else GIT_MODE_FILE)


@contextmanager
def _opened_above(folder: Path, path: str) -> Iterator[tuple[int, str]]:
    """The folder of a file, opened step by step so that nobody can put a link in the way meanwhile, and the file's name in it."""
    *above, name = path.split("/")
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for step in above:
            below = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        yield here, name
    finally:
        os.close(here)


def _check_workspace_size(count: int, size: int, where: Path) -> None:
    if count > MAX_WORKSPACE_FILES:
        raise InputError(
            f"{printable(str(where))}: more than {MAX_WORKSPACE_FILES:,} files; a workspace is copied for every attempt, so name a "
            "smaller folder, or FOLDER@COMMIT, which has no build products"
        )
    if size > MAX_WORKSPACE_BYTES:
        raise InputError(f"{printable(str(where))}: {_too_large()}")


def _too_large() -> str:
    return f"more than {MAX_WORKSPACE_BYTES >> 20} MB; a workspace is copied for every attempt, so name a smaller one"


# ---- commits


def _committed(folder: Path, commit: str) -> Iterator[tuple[str, GitFile]]:
    """What a commit has in this folder, byte by byte: no filter and no attribute of the repository changes it."""
    listed = git("ls-tree", "-r", "-z", "-l", commit, within=folder)
    entries = []
    size = 0
    for line in listed.split(b"\0"):
        about, _, path = line.partition(b"\t")
        if not path or about.split()[1] != b"blob":  # a submodule has no files here
            continue
        mode, _, name, length = about.decode().split()
        if not length.isdigit():
            raise InputError(f"commit {printable(commit)}: {printable(os.fsdecode(path))} is not in the repository")
        parts = os.fsdecode(path).split("/")
        if any(part in ("..", "") or part.lower() in EXCLUDED_FOLDERS for part in parts):
            continue
        entries.append(("/".join(parts), mode, name))
        size += int(length)
        _check_workspace_size(len(entries), size, folder)
    if not entries:
        raise InputError(f"commit {printable(commit)} has no files in {printable(str(folder))}")
    wanted = "".join(f"{name}\n" for _, _, name in entries)
    object_stream = io.BytesIO(git("cat-file", "--batch", within=folder, stdin=wanted.encode()))
    for file, mode, _ in entries:
        header = object_stream.readline().split()
        if len(header) != 3:
            raise InputError(f"commit {printable(commit)}: {printable(file)} is not in the repository")
        yield (
            file,
            GitFile(
                object_stream.read(int(header[2])),
                mode if mode in (GIT_MODE_EXECUTABLE, GIT_MODE_SYMLINK) else GIT_MODE_FILE,
            ),
        )
        object_stream.read(1)


def git(*arguments: str, within: Path, stdin: bytes = b"", repository: Path | None = None) -> bytes:
    """What git prints; raises InputError with its reason."""
    # whose folder it is does not matter: objects are read, nothing of the repository is run
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "-c",
        "protocol.allow=never",
        "-c",
        "core.protectNTFS=false",
        *arguments,
    ]
    named = {} if repository is None else {"GIT_DIR": str(repository), "GIT_WORK_TREE": str(within)}
    environment = {"PATH": os.environ.get("PATH", os.defpath), **GIT_ENVIRONMENT, **named}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaints:
        given.write(stdin)
        given.seek(0)
        try:
            process = subprocess.Popen(
                command, cwd=within, env=environment, stdin=given, stdout=subprocess.PIPE, stderr=complaints
            )
        except FileNotFoundError:
            raise InputError(
                f"{printable(str(within))} is gone" if shutil.which("git") else GIT_MISSING_MESSAGE
            ) from None
        began = time.monotonic()
        timer = threading.Timer(GIT_TIMEOUT_SECONDS, process.kill)
        timer.start()
        try:
            with process:
                printed = process.stdout.read(MAX_GIT_OUTPUT_BYTES + 1) if process.stdout else b""
                if len(printed) > MAX_GIT_OUTPUT_BYTES:
                    process.kill()
        finally:
            timer.cancel()
        complaints.seek(0)
        error_lines = complaints.read(MAX_GIT_OUTPUT_BYTES).decode("utf-8", "replace").strip().splitlines()
    if len(printed) > MAX_GIT_OUTPUT_BYTES:
        raise InputError(
            f"git {arguments[0]} printed more than {MAX_GIT_OUTPUT_BYTES >> 20} MB in {printable(str(within))}"
        )
    if process.returncode < 0 and time.monotonic() - began >= GIT_TIMEOUT_SECONDS:
        raise InputError(f"git {arguments[0]} took more than {GIT_TIMEOUT_SECONDS} s in {printable(str(within))}")
    if process.returncode:
        raise InputError(
            f"git {arguments[0]}: {printable(error_lines[-1]) if error_lines else f'exit code {process.returncode}'}"
        )
    return printed


# ---- copies


def write_files(found: WorkspaceFiles, folder: Path) -> None:
    """Put the files into a folder that holds nothing in their place."""
    made = set()
    for path, file in found.items():
        place = folder / path
        if place.parent not in made:
            place.parent.mkdir(parents=True, exist_ok=True)
            made.add(place.parent)
        if file.mode == GIT_MODE_SYMLINK:
            place.symlink_to(os.fsdecode(file.content))
        else:
            mode = 0o755 if file.mode == GIT_MODE_EXECUTABLE else 0o644
            with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:  # noqa: PTH123
                opened.write(file.content)


def with_added_files(found: WorkspaceFiles, extra: Mapping[str, str | bytes]) -> dict[str, GitFile]:
    """The files with others put over them; a text that begins with `#!` is a program."""
    contents = {path: text.encode() if isinstance(text, str) else text for path, text in extra.items()}
    taken = {*found, *contents}
    for path in contents:
        above = [str(parent) for parent in Path(path).parents if str(parent) in taken]
        below = [other for other in found if other.startswith(f"{path}/")]
        if above or below:
            raise InputError(f"{printable(path)} cannot be added: {printable((above or below)[0])} is in its way")
    fresh = {
        path: GitFile(content, GIT_MODE_EXECUTABLE if content.startswith(b"#!") else GIT_MODE_FILE)
        for path, content in contents.items()
    }
    return dict(sorted({**found, **fresh}.items()))


def check_path(path: str) -> None:
    """Raise InputError when a path does not lead to a file below a folder."""
    plain = Path(path)
    if str(plain) != path or path == "." or plain.is_absolute() or ".." in plain.parts or not path.isprintable():
        raise InputError(f"{path!r:.200} is not a plain path below the folder; write it like docs/style.md")
    if EXCLUDED_FOLDERS & {part.lower() for part in plain.parts}:
        raise InputError(f"{path!r:.200}: {' and '.join(sorted(EXCLUDED_FOLDERS))} are not part of a workspace")


def tar_archive(found: WorkspaceFiles) -> bytes:
    """The files as a tar archive, the same bytes for the same files."""
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, file in found.items():
            entry = tarfile.TarInfo(path)
            # long ago, so that whatever is changed later is newer
            entry.mtime = 1_000_000_000
            if file.mode == GIT_MODE_SYMLINK:
                entry.type, entry.linkname = tarfile.SYMTYPE, os.fsdecode(file.content)
                tar.addfile(entry)
            else:
                entry.mode, entry.size = 0o755 if file.mode == GIT_MODE_EXECUTABLE else 0o644, len(file.content)
                tar.addfile(entry, io.BytesIO(file.content))
    return packed.getvalue()


# ---- changes


def workspace_change(
    before: WorkspaceFiles, folder: Path, scratch: Path, *, ignoring: Collection[str] = ()
) -> WorkspaceChange:
    """What became of the files in a folder, as a git patch; `scratch` is an empty folder for git's own use.

    As in git, a new file counts unless the folder's own .gitignore names it, and a file that was there before always does.
    """
    repository = scratch / "git"
    git("init", "--quiet", "--bare", "--template=", str(repository), within=scratch)
    is_there = folder.is_dir() and not folder.is_symlink()
    if is_there:
        unlock(folder)
    new, unseen = _new_files(folder, repository) if is_there else (set(), "")
    old_files, new_files, left_out, room = {}, {}, [unseen] if unseen else [], MAX_CHANGED_BYTES
    for path in sorted({*before, *new} - set(ignoring)):
        was = before.get(path)
        size = _size(folder / path) if is_there else 0
        if size > max(room, 0 if was is None else len(was.content)):
            left_out.append(f"{printable(path)} ({_size_text(size)})")
            continue
        try:
            now = read_file(folder, path, size) if is_there else None
        except InputError:
            left_out.append(f"{printable(path)} (unreadable)")
            continue
        if now == was:
            continue
        if now is not None and (len(now.content) > room or (now.mode == GIT_MODE_SYMLINK and not _is_text(now))):
            left_out.append(f"{printable(path)} ({_size_text(size)})")
            continue
        if was is not None:
            old_files[path] = was
        if now is not None:
            new_files[path] = now
            room -= len(now.content)
    patch = _patch(old_files, new_files, repository)
    if len(patch) > MAX_PATCH_CHARACTERS:
        return WorkspaceChange("", (f"the whole patch ({_size_text(len(patch))})",))
    return WorkspaceChange(patch, tuple(left_out))


def unlock(folder: Path) -> None:
    """Make every folder readable for us, even if its permissions were changed."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            here.chmod(stat.S_IMODE(here.lstat().st_mode) | stat.S_IRWXU)
            waiting += [Path(entry.path) for entry in os.scandir(here) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue  # another user's, or too deep: it is not part of a patch


def _new_files(folder: Path, repository: Path) -> tuple[set[str], str]:
    """The files that git would add, including those in nested repositories; and the other files."""
    try:
        listed = git("ls-files", "-z", "--others", "--exclude-standard", within=folder, repository=repository)
    except InputError as error:
        return set(), f"new files ({error})"
    found: set[str] = set()
    for path in map(os.fsdecode, filter(None, listed.split(b"\0"))):
        if path.endswith("/"):
            found.update(_file_paths(folder, path.rstrip("/")))
        elif EXCLUDED_FOLDERS.isdisjoint(part.lower() for part in path.split("/")):
            found.add(path)
        if len(found) > MAX_WORKSPACE_FILES:
            return set(), f"new files (more than {MAX_WORKSPACE_FILES:,})"
    return found, ""


def _size(place: Path) -> int:
    try:
        return place.lstat().st_size
    except OSError:
        return 0


def _size_text(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _is_text(file: GitFile | None) -> bool:
    try:
        return file is None or file.content.decode() is not None
    except UnicodeDecodeError:
        return False


def _patch(before: WorkspaceFiles, after: WorkspaceFiles, repository: Path) -> str:
    """The diff between two trees as text: files that are not UTF-8 appear as git's binary patches."""
    as_text = {path for path in (*before, *after) if _is_text(before.get(path)) and _is_text(after.get(path))}
    everything_binary = repository / "binary"
    everything_binary.write_text("* -diff\n")
    patch = b""
    for is_text, options in (True, ()), (False, ("-c", f"core.attributesFile={everything_binary}")):
        sides = [{path: side[path] for path in side if (path in as_text) == is_text} for side in (before, after)]
        if not any(sides):
            continue
        name = "text" if is_text else "binary"
        stream = b"".join(_fast_import_commit(f"{name}-{number}", side) for number, side in enumerate(sides))
        git("fast-import", "--quiet", within=repository, stdin=stream)
        wanted = (
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
        )
        patch += git(*options, "diff-tree", *wanted, f"{name}-0", f"{name}-1", within=repository)
    return patch.decode()


def _fast_import_commit(name: str, side: WorkspaceFiles) -> bytes:
    """A commit of these files, as `git fast-import` reads it."""
    pieces = [b"commit refs/heads/%s\ncommitter - <-> 0 +0000\ndata 0\n" % name.encode()]
    for path, file in side.items():
        quoted = re.sub(rb'(["\\])', rb"\\\1", os.fsencode(path)).replace(b"\n", b"\\n")
        pieces.append(
            b'M %s inline "%s"\ndata %d\n%s\n' % (file.mode.encode(), quoted, len(file.content), file.content)
        )
    return b"".join([*pieces, b"\n"])
