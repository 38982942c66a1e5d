"""Reading and writing files so that nothing is ever half-written and every mistake is named.

Text is UTF-8 with or without a byte-order mark, or UTF-16 with one, with LF or CRLF, plain, gzip or xz by its name; `-`
is standard input or output. Output goes to a temporary file beside its destination and is renamed when complete.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from weitblick.common.characters import decoded_lines
from weitblick.common.errors import UserError
from weitblick.common.system import SYSTEM, make_durable, sweep, temporary_prefix

STANDARD = "-"


def _open_bytes(path: str | Path) -> IO[bytes]:
    if str(path) == STANDARD:
        if sys.stdin is None:
            raise UserError("is closed", where="standard input", remedy="name a file")
        return sys.stdin.buffer
    path = Path(path)
    if path.is_dir():
        raise UserError("is a directory, not a file", where=path, remedy="name a file")
    try:
        if path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(path, "rb"))
        if path.suffix == ".xz":
            return lzma.open(path, "rb")
        return open(path, "rb")
    except FileNotFoundError:
        raise UserError("no such file", where=path, remedy="check the path") from None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror or error})", where=path) from None


def read_lines(path: str | Path) -> Iterator[str]:
    """The lines of a text file without their line ends, streamed."""
    stream = _open_bytes(path)
    number = 0
    try:
        for line in decoded_lines(stream, path):
            number += 1
            yield line.removesuffix("\n").removesuffix("\r")
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise UserError(
            f"compressed data is damaged or cut short ({error})",
            where=path,
            line=number + 1,
            remedy="fetch or compress the file again",
        ) from None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror or error})", where=path, line=number + 1) from None
    finally:
        if str(path) != STANDARD:
            stream.close()


def _explain_write(path: str | Path, error: OSError) -> UserError:
    remedy = "free some space" if error.errno == errno.ENOSPC else "choose another place or change its permissions"
    return UserError(f"cannot be written ({error.strerror or error})", where=path, remedy=remedy)


@contextmanager
def atomic_path(path: str | Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block succeeds and vanishes when it fails. With
    `private`, other users cannot read it.

    What is written to a device or a pipe goes through it: they are never replaced.
    """
    if _is_device(path):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / f"output{Path(path).suffix[:16]}"
            _write_through(Path(folder) / f"output{Path(path).suffix[:16]}", path)
        return
    try:
        path = Path(os.path.realpath(path))  # through a link its target is replaced, not the link
        if path.is_dir():
            raise UserError("is a directory, not a file", where=path, remedy="name a file")
        if not path.parent.is_dir():
            raise UserError("no such folder", where=path.parent, remedy="make it first, or choose another place")
        sweep(path.parent)
        temporary = SYSTEM.new_file(path.parent, temporary_prefix(path), path.suffix[:16], private=private)
    except OSError as error:
        raise _explain_write(path, error) from None
    try:
        yield temporary
        make_durable(temporary)
        SYSTEM.replace(temporary, path)
        SYSTEM.sync(path.parent)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _explain_write(path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _is_device(path: str | Path) -> bool:
    """A device, a pipe, a socket: there, but neither a file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _write_through(written: Path, path: str | Path) -> None:
    try:
        with open(written, "rb") as source, open(path, "wb") as device:
            shutil.copyfileobj(source, device)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _explain_write(path, error) from None


def make_folder(path: str | Path) -> Path:
    """The folder, with those above it, if it is not there yet: for outputs that are folders by their nature."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UserError("is a file, not a folder", where=path, remedy="name a new or an existing folder") from None
    except OSError as error:
        raise _explain_write(path, error) from None
    return path


def output_in(output: str, name: str, *, folder: bool = False) -> str:
    """Where an output called `name` goes: into `output` if that is a folder, or `output` itself if it is a file.

    A folder is one that exists, or one that is named with a slash at its end, which is then made. With `folder` there
    are several outputs, which need one.
    """
    if not output:
        raise UserError("the output has no name", where="-o", remedy="name a file or a folder; - is standard output")
    if output == STANDARD:
        return output
    if output.endswith(("/", os.sep)):
        make_folder(output)
    if Path(output).is_dir():
        return str(Path(output) / name)
    if folder:
        what = "is a file, but several inputs need a folder" if Path(output).exists() else "no such folder"
        raise UserError(what, where=output, remedy=f"name a folder; {output}/ with a slash is made")
    return output


def protect_inputs(inputs: Iterable[str | Path], outputs: Iterable[str | Path]) -> None:
    """Refuses outputs that are inputs, by whatever name: links and redirected standard streams are followed."""
    read = {identity: path for path in inputs if (identity := _identity(path, 0)) is not None}
    for path in outputs:
        identity = _identity(path, 1)
        if identity is not None and (source := read.get(identity)) is not None:
            where = "standard output" if str(path) == STANDARD else path
            known = "an input" if str(source) in (str(path), STANDARD) else f"the input {source}"
            raise UserError(f"is {known}, which is never written over", where=where, remedy="name another output")


def _identity(path: str | Path, standard: int) -> tuple[int, int] | None:
    """Device and number of a regular file; None for what is no such file, or not there yet."""
    try:
        found = os.fstat(standard) if str(path) == STANDARD else os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


@contextmanager
def text_writer(path: str | Path) -> Iterator[IO[str]]:
    """An open text file that appears at `path` only when the block succeeds; `-` writes to standard output."""
    with text_writers([path]) as (stream,):
        yield stream


@contextmanager
def text_writers(paths: Sequence[str | Path]) -> Iterator[list[IO[str]]]:
    """Several open text files that appear together: all are complete on disk before the first takes its place."""
    names = [str(path) if str(path) == STANDARD else os.path.realpath(path) for path in paths]
    if len(set(names)) < len(names):
        raise UserError("is named twice as an output", where=max(names, key=names.count), remedy="name different files")
    with ExitStack() as renames:
        temporaries = [_temporary(renames, path) for path in paths]
        with ExitStack() as streams:
            opened = [
                streams.enter_context(_text_stream(path, temporary))
                for path, temporary in zip(paths, temporaries, strict=True)
            ]
            yield opened


def _temporary(renames: ExitStack, path: str | Path) -> Path | None:
    """Where to write before `path` is replaced; None for what must be written in place: `-`, devices and pipes."""
    return None if str(path) == STANDARD or _is_device(path) else renames.enter_context(atomic_path(path))


@contextmanager
def _text_stream(path: str | Path, temporary: Path | None) -> Iterator[IO[str]]:
    if str(path) == STANDARD:
        with _standard_output() as stream:
            yield stream
        return
    try:
        with (
            open(temporary or path, "wb") as raw,
            _compressor(raw, Path(path).suffix) as data,
            io.TextIOWrapper(data, encoding="utf-8", newline="\n") as stream,
        ):
            yield stream
    except BrokenPipeError:
        raise  # of another output: the reader of standard output has gone
    except OSError as error:
        raise _explain_write(path, error) from None


def _compressor(raw: IO[bytes], suffix: str) -> Any:
    """The same text gives the same bytes: neither names nor times are packed with it."""
    if suffix == ".gz":
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    return lzma.open(raw, "wb") if suffix == ".xz" else raw


@contextmanager
def _standard_output() -> Iterator[IO[str]]:
    if sys.stdout is None:
        raise UserError("is closed", where="standard output", remedy="name a file with -o")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # whatever the locale says
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # The interpreter flushes once more when it exits; what could not be written must not fail a second time.
        with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise _explain_write("standard output", error) from None


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """A temporary folder that replaces `path` when the block succeeds. A crash leaves either the old or the new."""
    path = recovered_folder(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent)
        temporary = SYSTEM.new_folder(path.parent, temporary_prefix(path))
    except OSError as error:
        raise _explain_write(path, error) from None
    try:
        yield temporary
        make_durable(temporary)
        if path.exists():
            retired = _retired(path)
            _remove(retired)
            SYSTEM.replace(path, retired)
            SYSTEM.replace(temporary, path)
            SYSTEM.sync(path.parent)
            _remove(retired)
        else:
            SYSTEM.replace(temporary, path)
            SYSTEM.sync(path.parent)
    except OSError as error:
        raise _explain_write(path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _retired(path: Path) -> Path:
    """Where a folder is while another takes its place."""
    return path.with_name(f".{path.name}.old")


def recovered_folder(path: str | Path) -> Path:
    """The folder, put back in its place if a crash came between the two renames of its replacement."""
    path = Path(path)
    if not path.name or path.exists():
        return path
    retired = _retired(path)
    if retired.is_dir():
        try:
            SYSTEM.replace(retired, path)
        except OSError:  # a place where nothing may be written
            return retired
    return path


def recover_folders(folder: Path) -> None:
    """Puts every folder inside `folder` back in its place that a crash left between two renames."""
    if folder.is_dir():
        for retired in folder.glob(".*.old"):
            if retired.is_dir():
                recovered_folder(retired.with_name(retired.name[1:-4]))


def write_json(path: str | Path, value: Any) -> None:
    with text_writer(path) as stream:
        json.dump(value, stream, ensure_ascii=False, indent=2)
        stream.write("\n")


def read_json(path: str | Path) -> Any:
    return decode_json("\n".join(read_lines(path)), path)


def decode_json(text: str, path: str | Path) -> Any:
    """A JSON text; one that no parser should be asked to read (too deep, numbers without end) is refused, too."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"not JSON ({error.msg})", where=path, line=error.lineno, remedy="mend the file") from None
    except (RecursionError, ValueError):
        raise UserError(
            "not JSON (nested too deeply, or a number too long)", where=path, remedy="mend the file"
        ) from None


def check_format_version(value: Any, supported: int, path: str | Path) -> None:
    """Every file format of ours carries `format_version`; a file from another version is refused, by name."""
    version = value.get("format_version") if isinstance(value, dict) else None
    if version != supported:
        raise UserError(
            f"format_version is {version!r}, this version of weitblick reads {supported}",
            where=path,
            remedy="make the file again with this version, or install the version that wrote it",
        )


def sha256(path: str | Path) -> str:
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror or error})", where=path) from None


def check_files(folder: Path, checksums: Mapping[str, str], listed_in: Path) -> None:
    """Refuses what is not the file that was saved: missing, changed, or no plain file of this very folder."""
    for name, expected in checksums.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise UserError(f"file {name!r} lies outside the folder", where=listed_in, remedy="restore the file")
        check_regular_file(path)
        if sha256(path) != expected:
            raise UserError(
                "is not the file that was saved", where=path, remedy="restore it from the run that wrote it"
            )


def check_regular_file(path: Path, remedy: str = "copy the whole folder again") -> None:
    """Refuses what is missing, and pipes and devices, which may never end."""
    if not path.exists():
        raise UserError("no such file", where=path, remedy=remedy)
    if not path.is_file():
        raise UserError("is not a plain file", where=path, remedy=remedy)
