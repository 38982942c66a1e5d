// @ts-check
/* Why this word, as a translator asks: the term, the approved translation or the row because of which it stands there,
   and what would stand there without. What researchers want to know is folded up below. */

import { alignedWith, data as explanation, plainText } from "./data.js";
import { element, percent } from "./elements.js";

/**
 * @typedef {import("./store.js").WordView} WordView
 * @typedef {{ entries: { sentence: number, mass: number, words: number[] }[] } | null} Attended
 * @typedef {{ source: string, target: string, origin: string, words: string[] }} SaidTerm
 */

/** The explanation of the row, as the server gave it. @returns {any} */
const shown = () => explanation;

const AROUND = 2; // words on either side of the one that was looked at most
let isOpen = false; // whether researchers have unfolded their part

/** What the panel shows of a word. @param {WordView} view @param {(Node | null)[]} figures what researchers want to know
 * @param {Attended} row @param {(position: number) => void} visit */
export function reasonsFirst(view, figures, row, visit) {
  const { side, sentence: position, word } = view;
  const text = shown().sentences[position][side].text[word];
  const approval = side === "target" ? ofApproval(position, word, visit) : null;
  const looked = approval ? null : row; // an approved translation is the reason, whatever else was looked at
  const found = side === "target" ? [ofTerm(position, text), approval, ofContext(position, word, looked, visit)] : [];
  const reasons = found.filter((reason) => reason !== null);
  const details = element("details", { class: "researchers", open: isOpen, ontoggle: (/** @type {Event} */ event) => (isOpen = /** @type {HTMLDetailsElement} */ (event.target).open) }, element("summary", {}, "For researchers"), ...figures);
  return [headline(view, text), ...reasons, side === "target" && !reasons.length ? element("p", { class: "quiet" }, "Only this sentence decides here.") : null, details];
}

/** @param {string} words */
const inTarget = (words) => element("b", { lang: shown().target_language, dir: "auto" }, words);
/** @param {string} words */
const inSource = (words) => element("b", { lang: shown().source_language, dir: "auto" }, words);

/** @param {WordView} view @param {string} text */
function headline({ side, sentence: position, word }, text) {
  const other = side === "source" ? "target" : "source";
  const partners = alignedWith(side, position, word).slice(0, 2).map((/** @type {[number, number]} */ [index]) => shown().sentences[position][other].text[index]);
  const named = other === "source" ? inSource : inTarget;
  return element(
    "header",
    { class: "word-head" },
    element("h2", { lang: side === "source" ? shown().source_language : shown().target_language, dir: "auto" }, text),
    element("p", { class: "quiet" }, `row ${position + 1}`, ...(partners.length ? [side === "source" ? " · became " : " · for ", named(partners.join(" "))] : [])),
  );
}

/** The term of the project that the word says. @param {number} position @param {string} text */
function ofTerm(position, text) {
  /** @type {SaidTerm[]} */
  const terms = shown().terms?.[position] ?? [];
  const term = terms.find(({ words }) => words.some((said) => said.includes(text) || text.includes(said)));
  if (!term || text.length < 2) return null;
  return element("p", { class: "block reason" }, "Because of the term ", inSource(term.source), " = ", inTarget(term.target), ` (${term.origin}).`);
}

/** The approved translation that the word was taken from. @param {number} position @param {number} word @param {(position: number) => void} visit */
function ofApproval(position, word, visit) {
  const own = shown().sentences[position].fetched?.find((/** @type {{ word: number }} */ one) => one.word === word);
  if (!own) return null;
  const place = own.sentence === null ? own.origin : rowButton(own.sentence, visit);
  return element(
    "section",
    { class: "block fetched reason" },
    element("p", {}, `${percent(own.share)} from an approved translation`, ...(place ? [" (", place, ")"] : []), ": ", inTarget(own.text)),
    element("p", { class: "quiet", lang: shown().source_language, dir: "auto" }, own.source),
    element("p", { lang: shown().target_language, dir: "auto" }, own.target),
  );
}

/** The row because of which the word is another one than it would be, and what it would be.
 * @param {number} position @param {number} word @param {Attended} row @param {(position: number) => void} visit */
function ofContext(position, word, row, visit) {
  const instead = shown().sentences[position].scores[word]?.[3];
  if (instead === undefined) return null;
  const first = row?.entries[0];
  const because = first ? ["Because ", rowButton(first.sentence, visit), " says ", inTarget(lookedAt(first)), ". "] : [];
  return element("p", { class: "block reason instead" }, ...because, "Without context it would say ", inTarget(instead), ".");
}

/** The words of a row around the one that was looked at most. @param {{ sentence: number, words: number[] }} entry */
function lookedAt({ sentence: position, words }) {
  const side = shown().sentences[position].context_words;
  const heaviest = words.indexOf(Math.max(...words));
  const first = Math.max(0, heaviest - AROUND);
  const last = Math.min(side.text.length, heaviest + AROUND + 1);
  const glued = side.glued.filter((/** @type {number} */ index) => index > first && index < last).map((/** @type {number} */ index) => index - first);
  const text = plainText({ text: side.text.slice(first, last), glued });
  return `${first ? "… " : ""}${text}${last < side.text.length ? " …" : ""}`;
}

/** @param {number} position @param {(position: number) => void} visit */
const rowButton = (position, visit) => element("button", { type: "button", class: "place-link", title: "Show the row", onclick: () => visit(position) }, `row ${position + 1}`);
