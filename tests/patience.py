"""How long tests wait for what must come: far longer than it takes, since the machine may be busy."""

import os

PATIENCE = int(os.environ.get("WEITBLICK_TEST_PATIENCE", "300"))
"""Seconds."""
