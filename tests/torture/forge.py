"""A process that has imported everything and computed nothing: commands are run in forks of it, in the time that one
would need to start. What a test process did before (threads, gradients) does not reach them.

It reads requests (pickled dictionaries) from standard input and answers with lists of (exit code, seconds of
the processor).
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

MEMORY = 2 << 30  # bytes that a command may take beyond what this process has
HUNG = -signal.SIGALRM  # the exit code of what was stopped after its time
WAITED = 300.0
"""Seconds by the clock in which a process that can run at all gets some time, however busy the machine is."""
REPORT = struct.Struct("<id")  # exit code, seconds of the processor
IMPORTED_LATE = (
    "matplotlib.pyplot",
    "pysbd",
    "sacrebleu",
    "scipy.stats",
    "sentencepiece",
    "torch._dynamo",  # by every optimiser
    "torch.utils.tensorboard",
)
WRITES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "os.link", "os.symlink")


def serve() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # nothing but answers goes there
    _import_everything()
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(run(**request), answers)
        answers.flush()


def _import_everything() -> None:
    import importlib
    import pkgutil

    import weitblick

    modules = [
        module.name for module in pkgutil.walk_packages(weitblick.__path__, "weitblick.", onerror=lambda name: None)
    ]
    for name in (*modules, *IMPORTED_LATE):
        if not name.endswith("__main__") and not name.startswith("weitblick.workbench"):  # which never ends
            with suppress(ImportError):  # an extra that is not installed
                importlib.import_module(name)


def run(
    commands: Sequence[Sequence[str]], folder: str, streams: str, seconds: float, trap: dict[str, Any]
) -> list[tuple[int, float]]:
    """Runs commands one after the other in one child, and those after one that crashes or hangs in another.

    Their streams are the files `streams`/NUMBER.in (if there), .out and .err.
    """
    outcomes: list[tuple[int, float]] = []
    while len(outcomes) < len(commands):
        reading, writing = os.pipe()
        errors = os.pipe() if "file_size" in trap else None  # the limit is of files: a pipe still takes messages
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.setpgid(0, 0)
            _become(commands, len(outcomes), folder, streams, writing, trap, None if errors is None else errors[1])
        os.close(writing)
        found = _watch(child, reading, len(commands) - len(outcomes), seconds)
        if errors is not None:
            os.close(errors[1])
            with os.fdopen(errors[0], "rb") as messages:
                Path(streams, f"{len(outcomes)}.err").write_bytes(messages.read())
        outcomes += found
    return outcomes


def _watch(child: int, reading: int, count: int, seconds: float) -> list[tuple[int, float]]:
    """The outcomes that a child reports, with that of the command that it died of.

    A command hangs if it takes more than `seconds` of the processor, or waits for what does not come. On a busy machine
    it may take any time.
    """
    found: list[tuple[int, float]] = []
    began = used = _processor_time(child)
    moved = time.monotonic()
    with os.fdopen(reading, "rb", buffering=0) as reports:
        while len(found) < count:
            ready, _, _ = select.select([reports], [], [], 1.0)
            report = reports.read(REPORT.size) if ready else None
            if ready and not report:
                _, status = os.waitpid(child, 0)
                return [*found, (os.waitstatus_to_exitcode(status), seconds)]
            now = _processor_time(child)
            if report:
                found.append(REPORT.unpack(report))
                began = now
            if report or now > used:
                used, moved = now, time.monotonic()
            if now - began > seconds or time.monotonic() - moved > WAITED:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return [*found, (HUNG, seconds)]
    os.waitpid(child, 0)
    return found


def _processor_time(group: int) -> float:
    """Seconds that the processes of a group have had so far."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _become(
    commands: Sequence[Sequence[str]],
    first: int,
    folder: str,
    streams: str,
    reports: int,
    trap: dict[str, Any],
    errors: int | None,
) -> NoReturn:
    try:
        os.chdir(folder)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in range(first, len(commands)):
            began = time.process_time()
            code = _run_one(commands[number], f"{streams}/{number}", trap, errors)
            os.write(reports, REPORT.pack(code, time.process_time() - began))
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def _run_one(arguments: Sequence[str], streams: str, trap: dict[str, Any], errors: int | None) -> int:
    """The command as a shell would start it, as far as it can tell."""
    from weitblick.cli.main import main

    given = f"{streams}.in" if os.path.exists(f"{streams}.in") else os.devnull
    created = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, (path, flags) in enumerate(
        ((given, os.O_RDONLY), (trap.get("stdout", f"{streams}.out"), created), (f"{streams}.err", created))
    ):
        handle = os.open(path, flags, 0o666)
        os.dup2(handle, number)
        os.close(handle)
    if errors is not None:
        os.dup2(errors, 2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (they live as long as the command)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = ["weitblick", *arguments]
    _set(trap)
    code = 70
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # a test may have closed it
                stream.flush()
        except (OSError, ValueError):
            code = code or 120  # what the interpreter would say
    return code


def _set(trap: dict[str, Any]) -> None:
    """What the machine does to the command."""
    if "kill_at" in trap:
        _kill_at(trap["kill_at"], trap.get("count"))
    if "file_size" in trap:  # a full disc, or death in the middle of writing a file
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if trap.get("die") else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (trap["file_size"], trap["file_size"]))
    if "handles" in trap:
        resource.setrlimit(resource.RLIMIT_NOFILE, (trap["handles"], trap["handles"]))
    if "close" in trap:
        for number in trap["close"]:
            os.close(number)
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)  # as the interpreter does
    if "user" in trap and os.geteuid() == 0:  # root may read and write everything
        os.setgroups([])
        os.setgid(trap["user"])
        os.setuid(trap["user"])


def _kill_at(number: int, count: str | None) -> None:
    """Ends the process, as kill -9 would, before its file operation of that number; `count` gets a line for each."""
    done = 0
    log = None if count is None else os.open(count, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def operation(what: str) -> None:
        nonlocal done
        done += 1
        if log is not None:
            os.write(log, f"{what}\n".encode())
        if done == number:
            os._exit(137)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in WRITES:
            operation(f"{event} {arguments[0]}")
        elif event == "open" and _is_writing(arguments[2]) and str(arguments[0]) != os.devnull:
            operation(f"open {arguments[0]}")

    sync = os.fsync

    def counted_sync(handle: int) -> None:
        operation("os.fsync")
        sync(handle)

    os.fsync = counted_sync
    sys.addaudithook(hook)


def _is_writing(flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


if __name__ == "__main__":
    serve()
