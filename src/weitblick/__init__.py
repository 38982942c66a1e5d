"""Document-level machine translation with selective attention."""

from weitblick import threads

threads.set_environment()  # before anything loads PyTorch

__version__ = "0.1.0"
