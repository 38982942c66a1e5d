"""Mozilla's Remote Settings and the hub's description of Marian models, as far as fetching asks, on 127.0.0.1."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "b" * 40


class ModelServer(ThreadingHTTPServer):
    """`answers`: path -> JSON; `files`: path -> bytes; `requests`: path and range, as they were asked.

    `breaks`: path -> after how many bytes the next connection is cut off, once each; `ranges`: whether it can go on.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.breaks: dict[str, list[int]] = {}
        self.ranges = True
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: Any) -> None:
        pass

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add_firefox(
        self, collection: str, files: dict[str, tuple[str, bytes]], pack: bool = True, **fields: Any
    ) -> None:
        """files: fileType -> name and content. The keys of records are those of the collection."""
        self.answers["/v1/"] = {"capabilities": {"attachments": {"base_url": f"{self.address}/cdn/"}}}
        for other in ("translations-models", "translations-models-v2"):
            self.answers.setdefault(f"/v1/buckets/main/collections/{other}/records", {"data": []})
        records = self.answers[f"/v1/buckets/main/collections/{collection}/records"]["data"]
        languages = fields.pop("languages", ("fr", "es"))
        keys = ("sourceLanguage", "targetLanguage") if collection.endswith("v2") else ("fromLang", "toLang")
        for kind, (name, content) in files.items():
            packed = gzip.compress(content, mtime=0) if pack else content
            location = f"main-workspace/{collection}/{len(records)}-{name}{'.gz' if pack else ''}"
            self.files[f"/cdn/{location}"] = packed
            record = {
                "name": name, "schema": 1, "id": f"{len(records)}", "fileType": kind, "version": "3.0",
                "filter_expression": "", **dict(zip(keys, languages, strict=True)), **fields,
                "attachment": {
                    "filename": location.rpartition("/")[2], "location": location, "size": len(packed),
                    "hash": hashlib.sha256(packed).hexdigest(), "mimetype": "application/octet-stream",
                },
            }  # fmt: skip
            if pack:
                record |= {
                    "decompressedSize": len(content),
                    "decompressedHash": hashlib.sha256(content).hexdigest(),
                }
            records.append(record)

    def add_hub(self, name: str, files: dict[str, bytes], license: str | None = "apache-2.0") -> None:
        """Large files are known by sha256, small ones by what git calls them."""
        siblings = []
        for file, content in sorted(files.items()):
            git = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
            entry: dict[str, Any] = {"rfilename": file, "size": len(content), "blobId": git}
            if file.endswith((".safetensors", ".bin", ".spm")):
                entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
            siblings.append(entry)
            self.files[f"/{name}/resolve/{COMMIT}/{file}"] = content
        card = {"license": license} if license else {}
        self.answers[f"/api/models/{name}"] = {"id": name, "sha": COMMIT, "siblings": siblings, "cardData": card}
        listed = self.answers.setdefault("/api/models", [])
        listed.append({"id": name})


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        path, asked = self.path.split("?")[0], self.headers.get("Range")
        self.server.requests.append((path, asked))
        if path in self.server.answers:
            return self._send(json.dumps(self.server.answers[path]).encode(), 200)
        content = self.server.files.get(path)
        if content is None:
            return self._send(b'{"error": "Repository not found"}', 404)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.ranges else 0
        self._send(content[start:], 206 if start else 200, self.server.breaks.get(path))

    def _send(self, body: bytes, status: int, breaks: list[int] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if breaks:
            self.wfile.write(body[: breaks.pop(0)])
            self.wfile.flush()
            self.close_connection = True
            return
        self.wfile.write(body)
