/* The document: a row for every sentence. Rows are plain text until they come near the window; then their words
   become elements. So a long document opens at once, and the browser's own search finds everything. */

import { data, encoder, influenceAt, plainText } from "./data.js";
import { $, element, heat, percent, relative, signed } from "./elements.js";

const SIDES = ["source", "target", "target_without"];
export const rows = [];

export function buildRows() {
  const observer = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) hydrate(Number(target.dataset.sentence));
    },
    { rootMargin: "800px 0px" },
  );
  const fragment = document.createDocumentFragment();
  data.sentences.forEach((sentence, index) => {
    const sides = {};
    const line = (side, language, extra) => {
      const text = element("span", { class: "words" }, plainText(sentence[side]));
      sides[side] = text;
      return element("p", { class: `line ${side}`, lang: language, dir: "auto", "data-side": side }, extra, text);
    };
    const differs = data.differences[index].some((words) => words.length);
    const row = element(
      "article",
      { class: "row", "data-sentence": index, "aria-label": `Sentence ${index + 1}` },
      element("span", { class: "number", "aria-hidden": "true" }, String(index + 1)),
      line("source", data.source_language),
      element(
        "div",
        { class: differs ? "translations differ" : "translations" },
        line("target", data.target_language),
        differs ? line("target_without", data.target_language, element("span", { class: "tag" }, "without context")) : null,
      ),
    );
    rows.push({ row, sides, words: null });
    fragment.append(row);
    observer.observe(row);
  });
  $("rows").append(fragment);
}

/* Gives a row its words; they are kept from then on. */
function hydrate(index) {
  const entry = rows[index];
  if (entry.words) return entry.words;
  entry.words = {};
  const [removed, added] = data.differences[index].map((words) => new Set(words));
  for (const side of SIDES) {
    const place = entry.sides[side];
    if (!place) continue;
    const glued = new Set(data.sentences[index][side].glued);
    const marks = side === "target" ? added : side === "target_without" ? removed : new Set();
    const spans = data.sentences[index][side].text.map((text, word) => wordElement(side, index, word, text, marks.has(word)));
    place.replaceChildren(...spans.flatMap((span, word) => (word && !glued.has(word) ? [" ", span] : [span])));
    entry.words[side] = spans;
  }
  return entry.words;
}

function wordElement(side, sentence, word, text, differs) {
  if (side === "target_without") return element(differs ? "del" : "span", {}, text);
  const found = side === "target" ? influenceAt.get(`${sentence}.${word}`) : undefined;
  const classes = ["w"];
  if (differs) classes.push("added");
  if (found) classes.push("mattered");
  if (found?.changed) classes.push("changed");
  const label = found ? `${text}, context mattered: ${signed(found.gain)} nats` : null;
  return element(
    "span",
    { class: classes.join(" "), "data-word": word, role: "button", tabindex: "-1", "aria-label": label },
    text,
  );
}

/* The word an event happened on, as { side, sentence, word }, or null. */
export function wordOf(event) {
  const span = event.target.closest?.(".w");
  if (!span) return null;
  return {
    side: span.closest(".line").dataset.side,
    sentence: Number(span.closest(".row").dataset.sentence),
    word: Number(span.dataset.word),
  };
}

export const spanOf = ({ side, sentence, word }) => hydrate(sentence)[side]?.[word];

/* Marks of the current selection in the document; `clearMarks` takes them all back. */
let marked = [];

export function mark(node, name, value = "") {
  if (!node) return;
  node.setAttribute(`data-${name}`, value);
  marked.push([node, `data-${name}`]);
}

export function clearMarks() {
  for (const [node, name] of marked) node.removeAttribute(name);
  marked = [];
}

/* Tints the context sentences in their place in the document. */
export function markContext(entries, current) {
  const side = encoder ? "source" : "target";
  for (const { sentence, mass, words } of entries) {
    const { row } = rows[sentence];
    mark(row, "context");
    mark(row.querySelector(".number"), "mass", `${relative(sentence, current)} ${percent(mass)}`);
    const spans = hydrate(sentence)[side];
    // Target context is a translation of an earlier pass: only words that still stand in their place are tinted.
    const read = data.sentences[sentence].context_words.text;
    const shown = data.sentences[sentence][side].text;
    words.forEach((weight, word) => heat(mass * weight) && read[word] === shown[word] && mark(spans[word], "heat", heat(mass * weight)));
  }
}
