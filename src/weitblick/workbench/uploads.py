"""Files that are translated as a whole and fetched when they are done; kept for an hour, in memory only."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from weitblick.common.errors import UserError
from weitblick.translation.document_job import Finished
from weitblick.translation.options import TranslationOptions
from weitblick.workbench.engine import Steps, Work, tokens_of, translated_document
from weitblick.workbench.errors import Refused, describe
from weitblick.workbench.transfer import read_upload, translated_name

if TYPE_CHECKING:
    from weitblick.workbench.service import Service

KEPT_SECONDS = 3600.0
MOST = 200

Status = Literal["queued", "translating", "done", "error"]


@dataclass
class Upload:
    id: str
    key: str
    name: str
    characters: int
    sentences: int
    created: float
    status: Status = "queued"
    finished: int = 0
    error: str | None = None
    result: bytes | None = None
    work: Work | None = None


class Uploads:
    def __init__(self, service: Service) -> None:
        self.service = service
        self._uploads: dict[str, Upload] = {}
        self._lock = threading.Lock()

    def add(self, name: str, content: bytes, options: TranslationOptions | None = None) -> Upload:
        """Begins to translate a file; a file that cannot be read is refused at once."""
        languages = self.service.languages
        file = read_upload(name, content, languages.source, self.service.alphabet, target_language=languages.target)
        document = file.masked()
        characters = sum(map(len, document.sources))
        if characters > self.service.limits.characters:
            raise Refused(413, f"more than {self.service.limits.characters:,} characters in one file")
        self._forget_old()
        upload = Upload(
            secrets.token_hex(16), secrets.token_hex(16), name, characters, len(document.sentences), time.time()
        )
        with self._lock:
            waiting = sum(one.status in ("queued", "translating") for one in self._uploads.values())
            if waiting >= MOST or tokens_of([document]) > self.service.limits.waiting_tokens * 10:
                raise Refused(429, "too many files wait to be translated", retry_after=30)
            self._uploads[upload.id] = upload
        self.service.characters += characters
        chosen = replace(options or TranslationOptions(), memory=self.service.suggestions())
        engine = self.service.engine

        def steps() -> Steps:
            upload.status = "translating"
            try:
                found: Finished = {}
                for finished in engine.document_steps(document, chosen):
                    found |= finished
                    upload.finished = len(found)
                    yield
                translated = translated_document(document, found).document
                translated = file.retried(translated, lambda lost: engine.translated(lost, chosen))
                whole, _ = file.unmasked(translated, engine.translator.align)
                upload.result = file.rendered(whole, engine.translator.align)[0]
                upload.status = "done"
            except Exception as error:
                upload.status, upload.error = "error", describe(error)[1]
                if not isinstance(error, UserError | Refused):
                    raise

        upload.work = engine.run(steps())
        return upload

    def get(self, identity: str, key: str | None = None) -> Upload:
        with self._lock:
            upload = self._uploads.get(identity)
        if upload is None or (key is not None and not secrets.compare_digest(key.encode(), upload.key.encode())):
            raise Refused(404, "no such document")
        return upload

    def result(self, identity: str, key: str | None = None) -> tuple[str, bytes]:
        """The translated file and its name."""
        upload = self.get(identity, key)
        if upload.status == "error":
            raise Refused(422, upload.error or "the document could not be translated")
        if upload.result is None:
            raise Refused(503, "the document is not translated yet", retry_after=1)
        return translated_name(upload.name, self.service.languages.target), upload.result

    def delete(self, identity: str) -> None:
        upload = self.get(identity)
        with self._lock:
            self._uploads.pop(identity, None)
        if upload.work is not None:
            upload.work.cancel()

    def close(self) -> None:
        for upload in tuple(self._uploads.values()):
            if upload.work is not None:
                upload.work.cancel()

    def _forget_old(self) -> None:
        with self._lock:
            now = time.time()
            done = [one for one in self._uploads.values() if one.status in ("done", "error")]
            old = [one for one in done if now - one.created > KEPT_SECONDS] + done[: max(0, len(done) - MOST)]
            for upload in old:
                self._uploads.pop(upload.id, None)
