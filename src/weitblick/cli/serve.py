"""`weitblick serve`: the workbench and the API."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from weitblick.errors import UserError
from weitblick.threads import use_threads

BACKLOG = 1024


def register(app: typer.Typer) -> None:
    app.command("serve", rich_help_panel="Train and translate")(serve)


def serve(
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Model folder; without it, the model that comes with weitblick.")
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
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads on the CPU; all cores if not given.")] = None,
) -> None:
    """Open the workbench in a browser, and answer programs that speak its API, LibreTranslate's or DeepL's.

    Example: weitblick serve

    Example: weitblick serve --port 5005 --data projects -m runs/tiny/best

    Example: weitblick serve --data projects --backup projects.sqlite
    """
    folder = data or data_folder()
    _check_installed()
    from weitblick.server.security import is_loopback, read_keys
    from weitblick.server.store import Store, back_up

    if backup is not None:
        back_up(folder, backup)
        return

    known = [] if keys is None else read_keys(keys)
    if not is_loopback(host) and not known and not open_to_all:
        raise UserError(
            f"others could reach {host} and read and change all projects",
            remedy="name a file of keys with --keys, or say --open",
        )
    use_threads(threads)
    listener = listen(host, port)
    store = Store(folder)  # before the model, which takes longer: another server may have it
    from weitblick.allocator import tune_allocator
    from weitblick.server.app import create_app
    from weitblick.server.running import run
    from weitblick.translation.translator import Translator

    tune_allocator()
    translator = Translator.load(model, device, warn=lambda message: None)
    name = Path(model).name if model else "shipped"
    app = create_app(translator, store, host=host, keys=known, name=name)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"

    def announce() -> None:
        typer.echo(f"Weitblick is at {address} (projects in {folder}; Ctrl+C ends it)")
        if next(translator.model.parameters()).device.type == "cpu" and could_build_kernels():
            typer.echo("It would be faster with compiled kernels. Build them once: python -m weitblick.kernels")
        sys.stdout.flush()

    run(app, listener, announce)


def data_folder() -> Path:
    """Where a user's programs keep their data."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "weitblick"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "weitblick"


def could_build_kernels() -> bool:
    """Whether kernels for decoding on the CPU are wanted and not there, though they could be built."""
    from weitblick.kernels.build import COMPILERS, OFF, built, wanted

    return wanted() != OFF and built() is None and any(map(shutil.which, COMPILERS))


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
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found[4])
        listener.listen(BACKLOG)
    except OSError as error:
        reason = "is in use" if getattr(error, "errno", None) == 98 else f"cannot be used ({error.strerror or error})"
        raise UserError(
            f"{host}:{port} {reason}", remedy="choose another port with --port, or 0 for a free one"
        ) from None
    return listener
