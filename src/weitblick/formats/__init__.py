"""Real files in, the same files out: subtitles, Office, localisation, the web."""

from weitblick.formats.file import TranslatableFile
from weitblick.formats.table import FORMATS, FileFormat, format_of, read_file

__all__ = ["FORMATS", "FileFormat", "TranslatableFile", "format_of", "read_file"]
