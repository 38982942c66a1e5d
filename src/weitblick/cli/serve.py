"""`weitblick serve`: the workbench and the API."""

from __future__ import annotations

import errno
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from weitblick.common.errors import UserError
from weitblick.common.system import SYSTEM
from weitblick.common.threads import use_threads

BACKLOG = 1024


def serve(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Model folder, or the name of an installed one; else the one that comes with weitblick.",
        ),
    ] = None,
    source_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Choose the installed model that translates from it.")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Choose the installed model that translates into it.")
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes a free one.")] = 5005,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Others than this machine's own need --keys, or --open.")
    ] = "127.0.0.1",
    data: Annotated[
        Path | None, typer.Option(help="Folder of the projects; without it, one in the user's data folder.")
    ] = None,
    keys: Annotated[Path | None, typer.Option(help="File of API keys, one a line, that clients must know.")] = None,
    open_to_all: Annotated[
        bool, typer.Option("--open", help="Listen elsewhere without keys: anybody may ask.")
    ] = False,
    backup: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Copy the projects to a file, even while a server runs, and end."),
    ] = None,
    recover: Annotated[
        bool, typer.Option("--recover", help="Save what can be read of damaged projects, and end.")
    ] = False,
    browser: Annotated[
        bool | None,
        typer.Option(help="Open the workbench in a browser; without it, if started by hand on this machine."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads on the CPU; all cores if not given.")] = None,
) -> None:
    """Start the workbench, open it in a browser, and answer programs that speak its API, LibreTranslate's or DeepL's.

    Example: weitblick serve

    Example: weitblick serve --port 5005 --data projects -m runs/tiny/best

    Example: weitblick serve --source-language fr --target-language es

    Example: weitblick serve --data projects --backup projects.sqlite

    Example: weitblick serve --data projects --recover
    """
    folder = data or SYSTEM.data_folder()
    _check_installed()
    from weitblick.workbench.database import back_up
    from weitblick.workbench.security import is_loopback, read_keys
    from weitblick.workbench.store import Store

    if backup is not None:
        back_up(folder, backup)
        return

    known = [] if keys is None else read_keys(keys)
    if not is_loopback(host) and not known and not open_to_all:
        raise UserError(
            f"others could reach {host} and read and change all projects",
            remedy="name a file of keys with --keys, or say --open",
        )
    from weitblick.checkpoints.installed import choose_model

    chosen = choose_model(model, source_language, target_language)
    if recover:
        _recover(folder, chosen)
        return
    use_threads(threads)
    listener = listen(host, port)
    store = Store(folder)  # before the model, which takes longer: another server may have it
    from weitblick.common.process import tune_allocator
    from weitblick.translation.translator import Translator
    from weitblick.workbench.app import create_app, run

    tune_allocator()
    translator = Translator.load(chosen, device, warn=lambda message: None)
    name = chosen.name if chosen is not None else "shipped"
    app = create_app(translator, store, host=host, keys=known, name=name)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"

    def announce() -> None:
        typer.echo(f"Weitblick is at {address} (projects in {folder}; Ctrl+C ends it)")
        sys.stdout.flush()
        if browser or (browser is None and is_loopback(host) and sys.stdout.isatty()):
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()  # some wait for it to close

    run(app, listener, announce)


def _recover(folder: Path, model: Path | None) -> None:
    from weitblick.checkpoints.installed import DEFAULT_MODEL, read_model
    from weitblick.workbench.recovery import recover

    found = recover(folder, read_model(model or DEFAULT_MODEL, "").source_language)
    typer.echo(f"{folder}: {found or 'the projects are in order; nothing was changed'}")


def _check_installed() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("fastapi", "uvicorn", "prometheus_client", "multipart") if find_spec(name) is None]
    if missing:
        raise UserError("the server is not installed", remedy="install it: pip install 'weitblick[server]'")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at the address, so that a port in use is said before a model is loaded; who asks already
    is answered when it is."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With its protocol: asyncio sends at once (TCP_NODELAY) only where that is named, else answers wait for 40 ms.
        listener = socket.socket(*found[:3])
        SYSTEM.share_address(listener)
        listener.bind(found[4])
        listener.listen(BACKLOG)
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror or error})"
        raise UserError(
            f"{host}:{port} {reason}", remedy="choose another port with --port, or 0 for a free one"
        ) from None
    return listener
