"""Office files as HTML, made by LibreOffice where it is installed: with a profile that is made for one file and gone
afterwards, without macros, without asking any other machine, and not for longer than a limit."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from weitblick.common.errors import UserError
from weitblick.common.system import SYSTEM

SECONDS = 120.0
PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop>
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Inet/Settings">
<prop oor:name="ooInetProxyType" oor:op="fuse"><value>1</value></prop>
<prop oor:name="ooInetHTTPProxyName" oor:op="fuse"><value>127.0.0.1</value></prop>
<prop oor:name="ooInetHTTPProxyPort" oor:op="fuse"><value>9</value></prop>
<prop oor:name="ooInetHTTPSProxyName" oor:op="fuse"><value>127.0.0.1</value></prop>
<prop oor:name="ooInetHTTPSProxyPort" oor:op="fuse"><value>9</value></prop>
<prop oor:name="ooInetNoProxy" oor:op="fuse"><value></value></prop></item>
</oor:items>
"""
"""No macros, nothing that a file links to, and a proxy that does not exist."""
_one_at_a_time = threading.Lock()


def office_program() -> str | None:
    """The program, if it is installed."""
    return shutil.which("soffice") or shutil.which("libreoffice")


def as_html(name: str, data: bytes, seconds: float = SECONDS) -> bytes:
    """An Office file as one HTML file with its pictures in it. `name` tells its kind, and is what errors are about."""
    program = office_program()
    if program is None:
        raise UserError("needs LibreOffice to be shown", where=name, remedy="install it, or export the file")
    with _one_at_a_time, tempfile.TemporaryDirectory(prefix="weitblick-office-") as folder:
        work = Path(folder)
        (work / "profile" / "user").mkdir(parents=True)
        (work / "profile" / "user" / "registrymodifications.xcu").write_text(PROFILE, encoding="utf-8")
        file = work / f"document{Path(name).suffix.lower()}"
        file.write_bytes(data)
        command = [
            program,
            f"-env:UserInstallation={(work / 'profile').as_uri()}",
            *("--headless", "--norestore", "--convert-to", "html:HTML:EmbedImages", "--outdir", folder),
            str(file),
        ]
        said = _run(command, {**os.environ, "HOME": folder}, name, seconds)
        made = work / "document.html"
        if not made.is_file():
            why = f" ({said.splitlines()[-1][:200]})" if said.strip() else ""
            raise UserError(f"cannot be shown by LibreOffice{why}", where=name, remedy="export the file and open it")
        return made.read_bytes()


def _run(command: list[str], environment: dict[str, str], name: str, seconds: float) -> str:
    """Runs a program with all that it starts, and ends all of it after so many seconds. Gives what it has said."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        SYSTEM.end_with_children(process.pid)
        process.communicate()
        raise UserError(
            f"LibreOffice was stopped after {seconds:g} s", where=name, remedy="export the file and open it"
        ) from None
    return said.decode(errors="replace")
