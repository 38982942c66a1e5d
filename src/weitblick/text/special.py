"""The special ids, the same in every vocabulary. No text ever encodes to one of them (but UNK, for unknown words)."""

from __future__ import annotations

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")
