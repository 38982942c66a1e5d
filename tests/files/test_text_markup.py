"""gettext catalogues and Markdown: only text changes; placeholders, plurals, code and links stay."""

from __future__ import annotations

from pathlib import Path

import polib
import pytest
from file_translators import amnesia, reversed_words, translated, upper
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from weitblick.common.errors import UserError
from weitblick.files.formats import read_file

HEADER = """# A comment
msgid ""
msgstr ""
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"""
CATALOGUE = (
    HEADER
    + """
#: a.c:1
#, c-format
msgid "The file %s could not be found."
msgstr ""

#. note
msgid "Done"
msgstr "Fertig"

#, fuzzy
#| msgid "old"
msgid ""
"We go home.\\n"
"It is \\"late\\".\\n"
msgstr ""
"alt\\n"

#, python-format
msgid "%d file"
msgid_plural "%d files were found"
msgstr[0] ""
msgstr[1] ""

msgctxt "menu"
msgid "%s"
msgstr ""

#~ msgid "obsolete"
#~ msgstr "x"
"""
)


def test_catalogue(tmp_path: Path) -> None:
    result = translated(tmp_path / "m.po", CATALOGUE, reversed_words)
    before, after = polib.pofile(CATALOGUE), polib.pofile(result)
    assert [(e.msgid, e.msgctxt, e.comment, e.occurrences) for e in before] == [
        (e.msgid, e.msgctxt, e.comment, e.occurrences) for e in after
    ]
    assert before.metadata == after.metadata
    assert [e.fuzzy for e in after if not e.obsolete] == [True, False, True, True, True]
    assert after[0].msgstr.count("%s") == 1
    assert "c-format" in after[0].flags
    assert after[1].msgstr == "Fertig"
    assert after[2].msgstr == 'home. go We\n"late". is It\n'
    assert after[3].msgstr_plural == {0: "file %d", 1: "found were files %d"}
    assert after[4].msgstr == "%s"
    assert "#~ msgid" in result


def test_catalogue_is_not_touched_without_translations(tmp_path: Path) -> None:
    (tmp_path / "m.po").write_text(CATALOGUE, encoding="utf-8")
    file = read_file(tmp_path / "m.po")
    assert file.rendered(file.document)[0] == CATALOGUE.encode()
    assert [s.target for s in file.document.sentences if s.status == "locked"] == ["Fertig"]


def test_catalogue_in_latin_1(tmp_path: Path) -> None:
    content = CATALOGUE.replace("UTF-8", "ISO-8859-1").replace("Fertig", "Schön").encode("latin1")
    (tmp_path / "m.po").write_bytes(content)
    file = read_file(tmp_path / "m.po")
    assert file.rendered(file.document)[0] == content
    (tmp_path / "m.po").write_bytes(CATALOGUE.replace("Fertig", "Schön").encode("latin1"))
    with pytest.raises(UserError, match="declares UTF-8"):
        read_file(tmp_path / "m.po")


def test_plural_without_a_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.po").write_text(CATALOGUE.replace('"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n', ""))
    with pytest.raises(UserError, match="Plural-Forms") as error:
        read_file(tmp_path / "m.po")
    assert error.value.line is not None


def test_missing_forms_are_added(tmp_path: Path) -> None:
    content = CATALOGUE.replace("nplurals=2", "nplurals=3").replace('msgstr[1] ""\n', "")
    entry = polib.pofile(translated(tmp_path / "m.po", content, upper))[3]
    assert set(entry.msgstr_plural) == {0, 1, 2}
    assert all(entry.msgstr_plural.values())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text('ab ."\\\n\t%sé{}', min_size=1, max_size=20), min_size=1, max_size=4, unique=True))
def test_any_message_survives(tmp_path_factory: pytest.TempPathFactory, messages: list[str]) -> None:
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    catalogue.extend(polib.POEntry(msgid=message) for message in messages)
    path = tmp_path_factory.mktemp("po") / "m.po"
    result = polib.pofile(translated(path, str(catalogue) + "\n", upper))
    assert [entry.msgid for entry in result] == messages
    for entry in result:
        if entry.msgid.strip() and any(map(str.isalpha, "".join(messages))):  # else nothing is touched
            assert entry.msgstr.strip()
            assert entry.msgstr.count("\n") == entry.msgid.count("\n")


PAGE = """---
title: My report
---
# The first *heading*

The house is **not yet** built. See [the plan of the
town](https://example.org/x_y "title") and `foo_bar(x)` for more.
It is *here*.

> A quotation that goes on and
> on for *two* lines.

- One point, with a very long line that is wrapped because
  it must be.
- [ ] A task.

1. One thing
2. Another thing

| Country | Members |
|---------|:-------:|
| Germany | ninety `x` |

```python
print("untouched")
```

    indented code

![An image](a.png) of a house[^1].

[^1]: A note about it.
<div>html *here*</div>

[ref]: https://example.org
"""


def structure(text: str) -> list[str]:
    parser = MarkdownIt("commonmark").enable("table")
    return [
        inner.type
        for token in parser.parse(text)
        for inner in [token, *sorted(token.children or [], key=lambda child: child.type)]
        if inner.type not in ("text", "softbreak")
    ]


@pytest.mark.parametrize("translate", [reversed_words, upper, amnesia])
def test_markdown_structure(tmp_path: Path, translate: object) -> None:
    result = translated(tmp_path / "r.md", PAGE, translate)  # type: ignore[arg-type]
    assert structure(result) == structure(PAGE)
    for kept in (
        "---\ntitle: My report\n---\n",
        '(https://example.org/x_y "title")',
        "`foo_bar(x)`",
        '```python\nprint("untouched")\n```\n\n    indented code\n',
        "](a.png)",
        "[^1]: ",
        "</div>\n\n[ref]: https://example.org\n",
        "|---------|:-------:|\n",
        "- [ ] ",
        "`x`",
    ):
        assert result.count(kept) == 1, kept


def test_emphasis_goes_with_its_words(tmp_path: Path) -> None:
    result = translated(tmp_path / "r.md", PAGE, reversed_words)
    assert "# *heading* first The\n" in result
    assert "**yet not**" in result
    assert "*here*." in result.replace("*here.*", "*here*.")


@settings(deadline=None, max_examples=40)
@given(st.text(st.sampled_from("ab .*_`[]()#>-|!\\\n1&<~"), max_size=60))
def test_any_markdown_is_untouched_by_identity(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("md") / "x.md"
    path.write_text(text, encoding="utf-8")
    file = read_file(path)
    assert file.rendered(file.document)[0] == text.encode()
    translated(path, None, reversed_words)


def test_definitions_cells_with_bars_and_html_in_markdown(tmp_path: Path) -> None:
    page = "Term\n: The meaning of it.\n\n| A cell |\n|---|\n| one \\| two |\n\n<div>\n  <p>A text</p>\n</div>\n\n"
    page += "# Title {#id}\n"
    result = translated(tmp_path / "a.md", page, upper)
    assert result == page.upper().replace("DIV>", "div>").replace("P>", "p>").replace("#ID", "#id")


def test_snake_case_and_stars_in_markdown_are_text(tmp_path: Path) -> None:
    result = translated(tmp_path / "a.md", "Use my_own_name and 5 * 3 here.\n", reversed_words)
    assert result == "here. 5 \\* 3 and my_own_name Use\n"


EXTENDED = """\
See [Foo Bar] and [foo bar][] and [no link] here.

[^1]: Yes.
[^2]: No, really not.
[foo bar]: https://x.org

!!! note "The title"
    An admonition.

> [!WARNING]
> Take care.

:::note
A note.
:::

import Tabs from '@theme/Tabs'

Press <kbd>Ctrl</kbd>+<kbd>C</kbd> now.
$$
x = y
$$
![A big cat](cat.png)
"""


def test_what_others_add_to_markdown_stays(tmp_path: Path) -> None:
    result = translated(tmp_path / "r.mdx", EXTENDED, upper)
    for kept in (
        *(
            "[^1]: YES.\n[^2]: NO, REALLY NOT.\n[foo bar]: https://x.org\n",
            '!!! note "The title"\n    AN ADMONITION.\n',
        ),
        *("> [!WARNING]\n> TAKE CARE.\n", ":::note\nA NOTE.\n:::\n", "\nimport Tabs from '@theme/Tabs'\n"),
        *("PRESS <kbd>Ctrl</kbd>+<kbd>C</kbd> NOW.", "$$\nx = y\n$$", "![A BIG CAT](cat.png)"),
        *("][Foo Bar]", "][foo bar]", "\\[NO LINK\\]"),
    ):
        assert result.count(kept) == 1, kept
    assert result.count("x = y") == 1


def test_a_language_with_one_form_has_that_of_many(tmp_path: Path) -> None:
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals=1; plural=0;\\n"\n\n'
    entry = 'msgid "One day"\nmsgid_plural "%d days"\nmsgstr[0] ""\n'
    assert 'msgstr[0] "%d DAYS"' in translated(tmp_path / "ja.po", head + entry, upper)
