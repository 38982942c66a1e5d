"""Translations of finished systems in a folder: a run that was interrupted goes on with the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from weitblick.errors import UserError
from weitblick.files import read_json, read_lines, text_writer, write_json
from weitblick.postedit.systems import SYSTEMS, Simulation

RUN = "run.json"


class KeptTranslations:
    """NAME.txt for every finished system, a sentence a line, an empty line between documents; run.json tells of which
    run they are. Those of another run are written over."""

    def __init__(self, folder: Path, simulation: Simulation) -> None:
        self.folder, self.identity = folder, identity(simulation)
        self.lengths = [len(document) for document in simulation.references]
        self.finished = self._finished()

    def get(self, name: str) -> list[list[str]] | None:
        path = self.folder / f"{name}.txt"
        if name not in self.finished or not path.is_file():
            return None
        lines = list(read_lines(path))
        if len(lines) != sum(self.lengths) + len(self.lengths) - 1:
            return None
        starts = accumulate((length + 1 for length in self.lengths), initial=0)
        return [lines[start : start + length] for start, length in zip(starts, self.lengths, strict=False)]

    def put(self, name: str, translations: Sequence[Sequence[str]]) -> None:
        with text_writer(self.folder / f"{name}.txt") as stream:
            stream.write("\n\n".join("\n".join(document) for document in translations) + "\n")
        self.finished = [*(other for other in self.finished if other != name), name]
        write_json(self.folder / RUN, {"identity": self.identity, "finished": self.finished})

    def _finished(self) -> list[str]:
        if not (self.folder / RUN).is_file():
            return []
        try:
            run = read_json(self.folder / RUN)
        except UserError:
            return []
        same = isinstance(run, dict) and run.get("identity") == self.identity
        return [str(name) for name in run.get("finished", [])] if same else []


def kept_files(folder: Path) -> list[Path]:
    """All that a run may write to a folder."""
    return [folder / RUN, *(folder / f"{name}.txt" for name in SYSTEMS)]


def identity(simulation: Simulation) -> str:
    """Of all that decides on the translations: model, documents, options and memory."""
    digest = hashlib.sha256()
    for parameter in simulation.translator.model.state_dict().values():
        digest.update(parameter.detach().cpu().float().numpy().tobytes())
    options = simulation.options
    pairs = [] if simulation.memory is None else [(pair.source, pair.target) for pair in simulation.memory]
    settings = (options.beam, options.length_penalty, options.context, options.passes)
    rest = (simulation.references, settings, simulation.before, simulation.seed, simulation.rate, pairs)
    digest.update(json.dumps(rest).encode())
    return digest.hexdigest()
