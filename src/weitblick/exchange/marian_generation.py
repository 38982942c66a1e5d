"""How `generate` of transformers searches where nothing else is asked for, as settings of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weitblick.config.recipe import GenerationSection
from weitblick.errors import UserError
from weitblick.exchange.marian_folder import CONFIG, GENERATION, MarianFolder
from weitblick.exchange.marian_words import Rows
from weitblick.text.special import BOS, EOS, PAD
from weitblick.validation import parse_value

# Settings that would change translations and that no beam search here has, with what leaves them out.
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "do_sample": (False, None),
    "min_length": (0, None),
    "min_new_tokens": (0, None),
    "no_repeat_ngram_size": (0, None),
    "encoder_no_repeat_ngram_size": (0, None),
    "repetition_penalty": (1.0, None),
    "encoder_repetition_penalty": (1.0, None),
    "exponential_decay_length_penalty": (None,),
    "num_beam_groups": (1, None),
    "penalty_alpha": (0, None),
    "guidance_scale": (1, None),
    "forced_bos_token_id": (None,),
    "force_words_ids": (None,),
    "constraints": (None,),
    "sequence_bias": (None,),
    "suppress_tokens": (None,),
    "begin_suppress_tokens": (None,),
    "stop_strings": (None,),
    "watermarking_config": (None,),
}


def generation_section(folder: MarianFolder, rows: Rows) -> GenerationSection:
    """From generation_config.json; older folders say it in config.json."""
    settings, where = folder.generation, folder.path / GENERATION
    if settings is None:
        settings, where = folder.config, folder.path / CONFIG
        if "num_beams" not in settings and "max_length" not in settings:
            settings = {**settings, "num_beams": GenerationSection().beam}
    for key, harmless in UNSUPPORTED.items():
        if settings.get(key) not in harmless:
            raise UserError(f"{key} is {settings[key]!r}, which is not known here", where=where, remedy="take it out")
    forced = settings.get("forced_eos_token_id")
    if forced not in (None, folder.token("eos_token_id"), [folder.token("eos_token_id")]):
        raise UserError(f"forced_eos_token_id {forced!r} is not the end of a sentence", where=where)
    longest = _longest(settings, where)
    early = settings.get("early_stopping") or False
    values = {
        "beam": settings.get("num_beams") or 1,
        "length_penalty": 1.0 if settings.get("length_penalty") is None else settings["length_penalty"],
        # A translation that nothing forces to end is cut there: one word more, and an end that costs nothing.
        "longest": longest if longest is None or forced is not None else longest + 1,
        "stop": {False: "beam", True: "first"}.get(early, early),
        "free_end": forced is not None or longest is not None,
        "forbidden": _forbidden(settings.get("bad_words_ids") or [], rows, where),
        "renormalize": bool(settings.get("renormalize_logits")),
    }
    return parse_value(GenerationSection, values, where)


def _longest(settings: dict[str, Any], where: Path) -> int | None:
    """Words of a translation, its start and end included."""
    key = "max_length" if settings.get("max_new_tokens") is None else "max_new_tokens"
    value = settings.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 2:
        raise UserError(f"{key} is {value!r}, not a number of words from 2", where=where)
    return value + (key == "max_new_tokens")


def _forbidden(bad_words: list[list[int]], rows: Rows, where: Path) -> list[int]:
    ids = {origin: number for number, origin in enumerate(rows.origins) if origin is not None}
    found = set()
    for word in bad_words:
        if not isinstance(word, list) or len(word) != 1 or word[0] not in ids:
            raise UserError(f"bad_words_ids has {word!r}, which is not one word", where=where, remedy="take it out")
        found.add(ids[word[0]])
    return sorted(found - {PAD, BOS, EOS})  # never produced here in any case; and the end cannot be forbidden there
