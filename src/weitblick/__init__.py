"""Document-level machine translation with selective attention."""

__version__ = "0.1.0"
