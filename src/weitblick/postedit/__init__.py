"""A translator simulated with references: what approved translations do for the sentences that follow."""

from weitblick.postedit.report import PostEditReport, postedit
from weitblick.postedit.systems import SYSTEMS

__all__ = ["SYSTEMS", "PostEditReport", "postedit"]
