// @ts-check
/* Why this word: the report's panel for a word of the table. */

import { data, useExplanation } from "./data.js";
import { isTyping } from "./editing.js";
import { $, element } from "./elements.js";
import { calm } from "./panel.js";
import { reasonsFirst } from "./reasons.js";
import { bringRow, positionOf } from "./rows.js";
import { shown } from "./saving.js";
import { ask, reasonOf, rowPath, sentence } from "./server.js";
import { change, isApproved, state } from "./store.js";
import { showWord } from "./word_panel.js";

/** @typedef {import("./store.js").WordView} WordView */

const HOVER = 220; // ms that the pointer rests on a word
const REST = 600; // ms that the cursor rests on one
const INVITATION =
  "Point at a word, or move the cursor to it, to see which sentences and which approved translations decided it, and what would stand there without them.";

let hoverTimer = 0;
let caretTimer = 0;
let latest = 0; // of several words that were asked for the last one is shown
/** @type {{ key: string, promise: Promise<any> | null }} */
let known = { key: "", promise: null };
/** What the panel shows. @type {WordView | string | null} */
let drawn = null;

const panelActions = {
  announce: () => {}, // the panel is read on demand: the status line is for what happened
  arrange: (/** @type {WordView} */ view, /** @type {Node[]} */ figures, /** @type {import("./reasons.js").Attended} */ row) =>
    reasonsFirst(view, figures, row, panelActions.visit),
  isCurrent: (/** @type {WordView} */ view) => state.word?.view === view,
  select: (/** @type {WordView} */ place) => look({ ...place, head: state.word?.view.head ?? null, query: null }),
  chooseHead: (/** @type {number | null} */ head) => state.word && look({ ...state.word.view, head }),
  chooseQuery: (/** @type {number} */ query) => state.word && look({ ...state.word.view, query }),
  visit: (/** @type {number} */ position) => {
    const row = bringRow(position)?.element;
    if (!row) return;
    row.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
    row.classList.remove("visited");
    void row.offsetWidth; // starts the animation again
    row.classList.add("visited");
  },
};

/** The explanation of a row as it stands, asked for once. @param {number} position */
function explanationOf(position) {
  const confirmed = state.rows.filter(isApproved).length;
  const key = JSON.stringify([state.document, position, state.rows[position].version, confirmed]);
  if (known.key !== key || !known.promise) known = { key, promise: ask("GET", `${rowPath(position)}/explanation`) };
  return known.promise;
}

/** Explains the word that holds a character of a row. The target is explained as the server has it.
 * @param {number} position @param {"source" | "target"} side @param {number} offset */
async function explainWord(position, side, offset) {
  const { source, target } = state.rows[position];
  if (!target.trim()) return false;
  clearTimeout(caretTimer);
  const own = ++latest;
  let value;
  try {
    value = await explanationOf(position);
  } catch (error) {
    known = { key: "", promise: null };
    if (own === latest) change((now) => (now.wordFailure = `This word cannot be explained now: ${sentence(reasonOf(error))}`));
    return false;
  }
  if (own !== latest || state.rows[position]?.target !== target) return false;
  if (data !== value) useExplanation(value);
  const word = wordAt(value.sentences[position][side].text, side === "source" ? source : target, offset);
  if (word === null) return false;
  look({ side, sentence: position, word, head: null, query: null });
  return true;
}

/** The index of the model's word that holds a character of the text. A model may write a word in another way (quotes,
 * dashes): it stands where the one before it ends. @param {string[]} words @param {string} text @param {number} offset */
function wordAt(words, text, offset) {
  let from = 0;
  for (let index = 0; index < words.length; index++) {
    const found = text.indexOf(words[index], from);
    const start = found < 0 || found > from + 40 ? from + text.slice(from).search(/\S|$/) : found;
    from = start + words[index].length;
    if (offset < from) return index;
  }
  return null;
}

/** @param {WordView} view */
function look(view) {
  change((now) => {
    now.word = { view, target: now.rows[view.sentence].target };
    now.wordFailure = "";
    now.attended = new Map();
  });
}

export function forgetWord() {
  latest += 1;
  change((now) => Object.assign(now, { word: null, wordFailure: "", attended: new Map() }));
}

/** The word that is explained, as long as its row still has it. */
function explained() {
  const { word } = state;
  const row = word && state.rows[word.view.sentence];
  return word && row && shown(row).target === word.target ? word.view : null;
}

/** How much the explained word looked at a row. @param {number} position */
export const massOf = (position) => (explained() ? state.attended.get(position) : undefined);

export function drawWord() {
  const wanted = state.wordFailure || explained();
  if (drawn === wanted && $("word-panel").firstChild) return;
  drawn = wanted;
  if (!wanted) return $("word-panel").replaceChildren(element("p", { class: "invitation" }, INVITATION));
  if (typeof wanted === "string") return $("word-panel").replaceChildren(element("p", { class: "quiet" }, wanted));
  showWord(wanted, panelActions).then((/** @type {{ entries: { sentence: number, mass: number }[] } | null} */ row) => {
    if (!row || state.word?.view !== wanted) return;
    change((now) => (now.attended = new Map(row.entries.slice(0, 8).map(({ sentence: position, mass }) => [position, mass]))));
  });
}

/** @param {number | null} position */
function point(position) {
  if (state.pointed !== position) change((now) => (now.pointed = position));
}

/** Explains the word at a place of the window: in the source, or behind the text field. @param {number} x @param {number} y */
async function pointAt(x, y) {
  const row = document.elementFromPoint(x, y)?.closest("#rows tr[data-position]");
  if (!row) return;
  const position = positionOf(row);
  point(position);
  const span = document.elementsFromPoint(x, y).find((node) => node.classList.contains("w") && node.closest("#rows"));
  if (!span) return;
  const side = span.closest(".source") ? "source" : "target";
  if (side === "target" && shown(state.rows[position]).target !== state.rows[position].target) return; // not saved yet
  let offset = 0;
  for (let node = span.previousSibling; node; node = node.previousSibling) offset += lengthOf(node);
  const found = await explainWord(position, side, offset);
  if (found) $("row-panel").scrollTop = $("word-panel").offsetTop - $("row-panel").offsetTop - 16; // other translations stand above
}

/** @param {Node} node */
const lengthOf = (node) => ((node instanceof HTMLElement && node.dataset.text) || (node.textContent ?? "")).length;

/** A character of the word that a cursor stands in, or at the end of. @param {string} text @param {number} cursor */
const wordBefore = (text, cursor) => (cursor > 0 && /^\s|^$/.test(text.slice(cursor)) ? cursor - 1 : cursor);

/** Explains the word at the cursor, once it rests there and the text is saved. @param {HTMLTextAreaElement} field */
function explainAtCursor(field) {
  clearTimeout(caretTimer);
  caretTimer = setTimeout(() => {
    if (document.activeElement !== field) return;
    const position = positionOf(field);
    if (isTyping() || field.value !== state.rows[position]?.target) explainAtCursor(field);
    else explainWord(position, "target", wordBefore(field.value, field.selectionStart));
  }, REST);
}

export function setUpExplaining() {
  const rows = $("rows");
  rows.addEventListener("pointerover", (event) => {
    const row = event.target instanceof Element && event.target.closest("#rows tr[data-position]");
    if (row) point(positionOf(row));
  });
  rows.addEventListener("pointermove", (event) => {
    clearTimeout(hoverTimer);
    if (event.pointerType === "touch" || event.buttons) return;
    const { clientX, clientY } = event;
    hoverTimer = setTimeout(() => pointAt(clientX, clientY), HOVER);
  });
  rows.addEventListener("pointerleave", () => {
    clearTimeout(hoverTimer);
    point(null);
  });
  rows.addEventListener("click", (event) => pointAt(event.clientX, event.clientY));
  document.addEventListener("selectionchange", () => {
    clearTimeout(caretTimer);
    const field = document.activeElement;
    if (!(field instanceof HTMLTextAreaElement) || !field.closest("#rows") || field.selectionStart !== field.selectionEnd) return;
    explainAtCursor(field);
  });
}
