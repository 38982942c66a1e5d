"""`weitblick data select`, `antecedents`, `pronouns`, `decisions`, `discourse`, `shortlist`: mined or generated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weitblick.cli.console import files_read, print_json, print_text, write_counted
from weitblick.cli.options import Corpus, InputFormat, Json, Model, OutputFormat, Outputs, Seed
from weitblick.common.errors import UserError
from weitblick.common.files import STANDARD, make_folder, protect_inputs

if TYPE_CHECKING:
    from weitblick.documents.contrast import ContrastItem
    from weitblick.documents.document import Document


def select(
    corpus: Corpus,
    output: Outputs,
    source_has: Annotated[str | None, typer.Option(metavar="REGEX", help="What the source must have.")] = None,
    target_has: Annotated[str | None, typer.Option(metavar="REGEX", help="What the target must have.")] = None,
    source_lacks: Annotated[str | None, typer.Option(metavar="REGEX", help="What the source must not have.")] = None,
    target_lacks: Annotated[str | None, typer.Option(metavar="REGEX", help="What the target must not have.")] = None,
    before: Annotated[int, typer.Option(min=0, help="Sentences kept before each that matches.")] = 3,
    after: Annotated[int, typer.Option(min=0, help="Sentences kept after it.")] = 0,
    held_out: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Leave out the documents that `data pronouns` holds out for its suites by this share."
        ),
    ] = 0.0,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Select sentences that match, each with the sentences around it, as documents of their own.

    Mixed into stage 2 (data.mix), such documents teach what context is for. Stretches that touch become one document.

    Example: weitblick data select train.en train.de -o it.en -o it.de --source-has '(?i)\\bit\\b'
    --target-has '\\b(er|sie|ihn|ihm)\\b' --source-lacks '(?i)\\b(he|she|they|them|you)\\b'
    """
    from weitblick.documents.corpora.formats import read_documents
    from weitblick.documents.splits import Pattern, share_of
    from weitblick.documents.splits import select as select_from

    if not (source_has or target_has or source_lacks or target_lacks):
        raise UserError(
            "nothing to look for", remedy="give --source-has, --target-has, --source-lacks or --target-lacks"
        )
    pattern = Pattern(
        source=_compiled("--source-has", source_has),
        target=_compiled("--target-has", target_has),
        not_source=_compiled("--source-lacks", source_lacks),
        not_target=_compiled("--target-lacks", target_lacks),
    )
    protect_inputs(corpus, output)
    kept = (document for document in read_documents(corpus, from_format) if share_of(document) >= held_out)
    write_counted(select_from(kept, pattern, before, after), output, to_format)


def _compiled(option: str, text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise UserError(
            f"{option} {text!r} is no regular expression: {error}", remedy="see Python's re module"
        ) from None


# `weitblick data antecedents`: documents whose pronouns are decided in another sentence, made of one's own corpus.


def antecedents(
    corpus: Corpus,
    output: Outputs,
    documents: Annotated[int, typer.Option(min=1, help="Documents to make.")] = 8000,
    sentences_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Take the sentences from this corpus, and only the nouns from the other; once for each side.",
        ),
    ] = None,
    contrast: Annotated[
        str | None, typer.Option(metavar="FILE", help="The pronouns as a suite for `weitblick contrast` (JSONL), too.")
    ] = None,
    seed: Seed = 1,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Make documents whose pronouns are decided by a noun in another sentence, from an English-German corpus.

    Nouns, their translations and genders are learned from the corpus; short sentences about them are taken from it,
    and behind each stands one like "We need it.". Mixed into stage 2 (data.mix), they teach what context is for.

    Example: weitblick data antecedents train.en train.de -o antecedents.en -o antecedents.de
    """
    from weitblick.documents.corpora.formats import read_documents
    from weitblick.documents.discourse.german import learn_nouns
    from weitblick.documents.mining.antecedents import antecedent_documents

    written = [*output, *([] if contrast is None else [contrast])]
    protect_inputs([*corpus, *(sentences_from or [])], written)
    texts = list(read_documents(corpus, from_format))
    if not any(sentence.target for document in texts for sentence in document.sentences):
        raise UserError("the corpus has no target", where=corpus[0], remedy="name SOURCE TARGET")
    nouns = learn_nouns(texts)
    if sentences_from:
        texts = list(read_documents(sentences_from, from_format))
    made = list(antecedent_documents(texts, nouns, documents, seed))
    suites = {contrast: [item for _, items in made for item in items]} if contrast else {}
    _write([document for document, _ in made], output, to_format, suites)
    if STANDARD not in output:
        print_text(f"{documents} documents about {len(nouns)} nouns in {', '.join(written)}")


# `weitblick data pronouns`: sentences of a corpus in which *it* became er, sie or es, to train on and to judge by.


def pronouns(
    corpus: Corpus,
    output: Outputs,
    before: Annotated[int, typer.Option(min=1, help="Sentences kept before each.")] = 4,
    inside: Annotated[
        float, typer.Option(min=0, max=1, help="Share of pronouns kept that do not open their sentence.")
    ] = 0.25,
    es: Annotated[float, typer.Option(min=0, help="How many es to keep for each er and sie.")] = 1.0,
    expletive: Annotated[
        float, typer.Option(min=0, max=1, help='Share of these es that stand for no noun, as in "it is clear that".')
    ] = 0.4,
    whole: Annotated[int, typer.Option(min=0, help="So many of them keep all that stands before them.")] = 2000,
    held_out: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the documents that only the suites take from.")
    ] = 0.1,
    contrast: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A suite for `weitblick contrast` of the documents held out: opening pronouns that stand for a noun "
            "one to three sentences before, er, sie and es alike.",
        ),
    ] = None,
    contrast_es: Annotated[
        str | None, typer.Option(metavar="FILE", help="Another one: es that stands for no noun, or a predicate.")
    ] = None,
    seed: Seed = 1,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Find sentences in which English says it and German er, sie or es, each with the sentences before it.

    A context layer learns from them what it stands for (stage: decision, recipes/europarl-small/pronouns.yaml).
    Which documents are held out depends on their text alone.

    Example: weitblick data pronouns train.en.xz train.de.xz -o it.en -o it.de --contrast it.jsonl
    """
    from weitblick.documents.corpora.formats import read_documents
    from weitblick.documents.discourse.german import learn_nouns
    from weitblick.documents.mining.pronouns import mine_pronouns

    suites = [path for path in (contrast, contrast_es) if path is not None]
    protect_inputs(corpus, [*output, *suites])
    if STANDARD in corpus:
        raise UserError("the corpus is read twice, standard input only once", remedy="name files")
    nouns = learn_nouns(read_documents(corpus, from_format)) if suites else {}
    found = mine_pronouns(
        read_documents(corpus, from_format),
        nouns,
        before=before,
        inside=inside,
        es=es,
        expletive=expletive,
        held_out=held_out if suites else 0.0,
        whole=whole,
        seed=seed,
    )
    if not any(found.counts.values()):
        raise UserError(
            "no sentence with it and er, sie or es behind another one", where=corpus[0], remedy="name SOURCE TARGET"
        )
    written = {path: items for path, items in ((contrast, found.suite), (contrast_es, found.suite_es)) if path}
    _write(found.documents, output, to_format, written)
    if STANDARD not in output:
        counts = ", ".join(f"{count} {pronoun}" for pronoun, count in found.counts.items())
        print_text(f"{len(found.documents)} documents ({counts}) in {', '.join(output)}")
        for path, items in written.items():
            print_text(f"{len(items)} items in {path}")


# `weitblick data decisions`: what a file of sets names, in any language.


def decisions(
    corpus: Corpus,
    output: Outputs,
    sets: Annotated[
        str | None, typer.Option(metavar="FILE", help="Kinds of decisions (YAML); without it, those of German.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this kind. Repeatable.")] = None,
    before: Annotated[int, typer.Option(min=1, help="Sentences kept before each.")] = 5,
    most: Annotated[int, typer.Option(min=1, help="So many of each choice at most, the clearest first.")] = 1500,
    undecided: Annotated[
        float, typer.Option(min=0, help="So many times as many in which the sentence itself tells the word.")
    ] = 0.5,
    whole: Annotated[int, typer.Option(min=0, help="So many of them keep all that stands before them.")] = 500,
    held_out: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the documents that only the suite takes from.")
    ] = 0.1,
    contrast: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A suite for `weitblick contrast` of the documents held out (JSONL)."),
    ] = None,
    seed: Seed = 1,
    from_format: InputFormat = None,
    to_format: OutputFormat = None,
) -> None:
    """Find sentences whose translation has a word that only the sentences before can tell, by a file of sets of words.

    A context layer learns from them, alone or with those of `data pronouns` (stage: decision; context.decides names the
    sets). Which documents are held out depends on their text alone.

    Example: weitblick data decisions train.en.xz train.de.xz -o its.en -o its.de --only its --contrast its.jsonl
    """
    from weitblick.documents.corpora.formats import read_documents
    from weitblick.documents.mining.decisions import mine_decisions, read_decision_kinds

    protect_inputs([*corpus, *([sets] if sets else [])], [*output, *([contrast] if contrast else [])])
    kinds = read_decision_kinds(sets)
    for name in only or []:
        if name not in kinds:
            raise UserError(f"--only {name!r}: no such decision", where=sets, remedy=f"there are {', '.join(kinds)}")
    found = mine_decisions(
        read_documents(corpus, from_format),
        {name: kind for name, kind in kinds.items() if not only or name in only},
        before=before,
        most=most,
        undecided=undecided,
        held_out=held_out if contrast else 0.0,
        whole=whole,
        seed=seed,
    )
    if not found.documents:
        raise UserError(
            "no sentence with such a decision behind another one", where=corpus[0], remedy="name SOURCE TARGET"
        )
    _write(found.documents, output, to_format, {contrast: found.suite} if contrast else {})
    if STANDARD not in output:
        print_text(f"{len(found.documents)} documents in {', '.join(output)}")
        for name, counts in found.counts.items():
            print_text(f"{name}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
        if contrast is not None:
            print_text(f"{len(found.suite)} items in {contrast}")


def _write(
    documents: Sequence[Document],
    output: Sequence[str],
    to_format: str | None,
    suites: Mapping[str, Sequence[ContrastItem]],
) -> None:
    """Writes a corpus and the suites that came with it; nothing at all if one of the files cannot be written."""
    from weitblick.common.files import text_writers
    from weitblick.documents.corpora.formats import write_documents

    with text_writers(list(suites)) as streams:
        for stream, items in zip(streams, suites.values(), strict=True):
            stream.writelines(item.to_line() for item in items)
        write_documents(documents, output, to_format)


# `weitblick data discourse`: a corpus in which context decides, and the suite that tells whether a model uses it.

Preset = Literal["small", "rich"]


def discourse(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the corpus; made if it does not exist.")],
    preset: Annotated[
        Preset, typer.Option(help="small: pronouns, learned in minutes; rich: many phenomena and words, for studies.")
    ] = "small",
    documents: Annotated[int, typer.Option(metavar="N", help="Training documents.")] = 3000,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Generate English-German documents in which the right translation depends on another sentence.

    Writes DIR/{train,dev,test}.{en,de}, the contrastive suite DIR/contrast.jsonl, and DIR/discourse.json with the
    counts and the chance level of each phenomenon.

    Example: weitblick data discourse corpora/small --preset small --documents 3000 --seed 1
    """
    from weitblick.documents.discourse.generator import generate, write_corpus

    make_folder(folder)  # before the work, not after it
    description = write_corpus(generate(preset, documents, seed), folder)
    if as_json:
        print_json(description)
        return
    for split, count in description["documents"].items():
        print_text(f"{split}: {count} documents, {description['sentences'][split]} sentences")
    for name, facts in description["phenomena"].items():
        print_text(f"{name}: {facts['items']} contrastive items, chance {facts['chance']:.3f}")


# `weitblick data shortlist`: which target words may translate which source words.


def shortlist(
    corpus: Corpus,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where the shortlist goes.")],
    model: Model = None,
    each: Annotated[int, typer.Option(min=1, help="Target words of a source word.")] = 40,
    common: Annotated[int, typer.Option(min=1, help="Frequent target words that every sentence may use.")] = 200,
    from_format: InputFormat = None,
) -> None:
    """Learn from a corpus which target words may translate which source words, for `translate --shortlist`.

    Example: weitblick data shortlist train.en train.de -o en-de.shortlist
    """
    from weitblick.checkpoints.folder import load_model
    from weitblick.checkpoints.installed import default_model
    from weitblick.documents.corpora.formats import read_documents
    from weitblick.fast.shortlist import Shortlist

    protect_inputs([*corpus, *files_read(model)], [output])
    pipeline = load_model(default_model() if model is None else model, "cpu").pipeline
    sentences = (sentence for document in read_documents(corpus, from_format) for sentence in document.sentences)
    pairs = ((sentence.source, sentence.target) for sentence in sentences if sentence.target)
    learned = Shortlist.learn(pairs, pipeline, common=common, each=each)
    learned.save(output)
    print_text(f"{len(learned.common)} common words and up to {each} for each of {len(learned.table)} in {output}")
