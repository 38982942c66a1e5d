// @ts-check
/* Concordance: how words were translated before, in all documents of the project, its memory and its glossary. A hit in a
   row is gone to, with the words marked there. */

import { openDialog } from "./dialogs.js";
import { openDocument } from "./documents.js";
import { focusRow, rememberCursor } from "./editing.js";
import { $, count, element } from "./elements.js";
import { selectedWords } from "./find.js";
import { viewOf } from "./rows.js";
import { ask, attempt, projectPath } from "./server.js";
import { languages, state } from "./store.js";

/** @typedef {{ kind: "term" | "row" | "memory", source: string, target: string, origin: string, document: string | null, position: number | null, state: string | null }} Hit */

const PAUSE = 200; // ms after the last key until it is looked for
const LONGEST = 200; // characters that are looked for
const MARK = "concordance"; // the browser's name for what is marked in a source
const PATIENCE = 100; // times that a row of another document is waited for, with a picture of the page each

let timer = 0;
let looks = 0; // counts them: an answer that comes late is not shown

const input = () => /** @type {HTMLInputElement} */ ($("concordance-text"));
const side = () => /** @type {HTMLSelectElement} */ ($("concordance-side"));
const wanted = () => input().value.trim().replace(/\s+/g, " ");

/** Opens the dialog, with the words that are selected in either column. */
export function openConcordance() {
  const words = selectedWords().slice(0, LONGEST);
  openDialog("concordance-dialog");
  if (words) input().value = words;
  input().select();
  look();
}

async function look() {
  clearTimeout(timer);
  const number = ++looks;
  const text = wanted();
  if (!text) return show([], false, "");
  await attempt("The words could not be looked for", async () => {
    const asked = new URLSearchParams({ text, side: side().value, document: state.document ?? "" });
    const { hits, more } = await ask("GET", `${projectPath()}/concordance?${asked}`);
    if (number === looks) show(hits, more, text);
  });
}

/** @param {Hit[]} hits @param {boolean} more @param {string} text */
function show(hits, more, text) {
  $("concordance-hits").textContent = !text ? "" : !hits.length ? "nothing found" : more ? `the first ${hits.length}` : count(hits.length, "place", "places");
  $("concordance-list").replaceChildren(...hits.map((hit) => item(hit, text)));
}

/** @param {Hit} hit @param {string} text */
function item(hit, text) {
  const { source, target } = languages();
  const said = (/** @type {string} */ words, /** @type {import("./store.js").Language} */ { code, direction }) =>
    element("span", { class: "concordance-text", lang: code, dir: direction }, ...marked(words, text));
  const texts = [said(hit.source, source), said(hit.target || "–", target), element("span", { class: "quiet" }, placeOf(hit))];
  const { document: owner, position } = hit;
  if (owner === null || position === null) return element("li", { class: "concordance-hit" }, ...texts);
  return element("li", {}, element("button", { type: "button", class: "concordance-hit", onclick: () => goTo(owner, position, text) }, ...texts));
}

/** @param {Hit} hit */
function placeOf({ kind, origin, document: owner, position, state: rowState }) {
  if (kind === "term") return `Term: ${origin}`;
  if (kind === "memory") return `Memory: ${origin}`;
  const place = `row ${(position ?? 0) + 1}, ${rowState === "empty" ? "waiting" : rowState}`;
  return owner === state.document ? `This document, ${place}` : `${origin}, ${place}`;
}

/** The places of words in a text, whatever their capitals. @param {string} text @param {string} words */
function places(text, words) {
  const pattern = new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
  return [...text.matchAll(pattern)].map((found) => ({ start: found.index, end: found.index + found[0].length }));
}

/** A text in which words are marked. @param {string} text @param {string} words */
function marked(text, words) {
  /** @type {(string | Node)[]} */
  const parts = [];
  let from = 0;
  for (const { start, end } of places(text, words)) {
    parts.push(text.slice(from, start), element("mark", {}, text.slice(start, end)));
    from = end;
  }
  return [...parts, text.slice(from)];
}

/** @param {string} owner @param {number} position @param {string} words */
async function goTo(owner, position, words) {
  /** @type {HTMLDialogElement} */ ($("concordance-dialog")).close();
  if (owner === state.document) {
    focusRow(position);
    return markIn(position, words);
  }
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  rememberCursor(position, owner); // where the document will be opened
  openDocument(owner);
  for (let turn = 0; turn < PATIENCE && (state.rowsOf !== owner || state.loading); turn++) {
    await new Promise((next) => setTimeout(next, PAUSE / 4));
  }
  if (state.document !== owner || state.rowsOf !== owner) return;
  focusRow(position);
  markIn(position, words);
}

/** Marks words in a row: selected in its field, or highlighted in its source. @param {number} position @param {string} words */
function markIn(position, words) {
  const view = viewOf(position);
  if (!view) return;
  const [inTarget] = places(view.field.value, words);
  if (inTarget) view.field.setSelectionRange(inTarget.start, inTarget.end);
  const text = view.source.firstChild;
  if (!("highlights" in CSS) || !(text instanceof Text)) return;
  const ranges = places(text.data, words).map(({ start, end }) => {
    const range = new Range();
    range.setStart(text, start);
    range.setEnd(text, end);
    return range;
  });
  CSS.highlights.set(MARK, new Highlight(...ranges));
}

export function setUpConcordance() {
  const form = $("concordance-form");
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(look, event.target === input() ? PAUSE : 0);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return; // in a search field it would only take the words away
    event.preventDefault();
    /** @type {HTMLDialogElement} */ ($("concordance-dialog")).close();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    /** @type {HTMLElement | null} */ ($("concordance-list").querySelector("button"))?.click();
  });
  $("rows").addEventListener("focusout", () => "highlights" in CSS && CSS.highlights.delete(MARK));
  $("concordance-button").addEventListener("click", openConcordance);
}
