"""As much of a Hugging Face hub as publishing and fetching a model asks for, on 127.0.0.1."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "a" * 40


class Hub(ThreadingHTTPServer):
    """`repositories`: name -> path -> bytes; `requests`: what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.requests: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, content in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, content)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self) -> None:
        self._answer({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0].strip("/")
        self.server.requests.append(f"{self.command} {path}")
        parts = path.split("/")
        if parts[:2] == ["api", "models"]:
            name = "/".join(parts[2:4])
            if name not in self.server.repositories:
                return self._missing()
            files = self.server.repositories[name]
            if "tree" in parts:
                entries = [
                    {"type": "file", "path": file, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                    for file, content in sorted(files.items())
                ]
                return self._answer(entries)
            siblings = [{"rfilename": file} for file in sorted(files)]
            return self._answer({"id": name, "sha": COMMIT, "private": False, "siblings": siblings, "tags": []})
        if len(parts) > 4 and parts[2] == "resolve":
            content = self.server.repositories.get("/".join(parts[:2]), {}).get("/".join(parts[4:]))
            if content is None:
                return self._missing()
            etag = f'"{hashlib.sha1(content).hexdigest()}"'
            return self._answer(content, headers={"ETag": etag, "X-Repo-Commit": COMMIT})
        self._missing()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.split("?")[0].strip("/")
        self.server.requests.append(f"POST {path}")
        if path == "api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.server.repositories.setdefault(name, {})
            return self._answer({"url": f"{self.server.address}/{name}", "name": name, "id": name})
        if path == "api/validate-yaml":
            return self._answer({"errors": [], "warnings": []})
        parts = path.split("/")
        name, action = "/".join(parts[2:4]), parts[4] if len(parts) > 4 else ""
        if action == "preupload":
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in json.loads(body)["files"]
            ]
            return self._answer({"files": files})
        if action == "commit":
            for line in body.splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    content = base64.b64decode(entry["value"]["content"])
                    self.server.repositories[name][entry["value"]["path"]] = content
            return self._answer(
                {"success": True, "commitUrl": f"{self.server.address}/{name}/commit/{COMMIT}", "commitOid": COMMIT}
            )
        self._missing()
