// @ts-check
/* Formatting placed by hand: around the selected words of a translation, in the order of the source. What nobody has
   placed goes where its words go, and says so. */

import { element } from "./elements.js";
import { forgetTyping, sendTyped } from "./editing.js";
import { person } from "./person.js";
import { viewOf } from "./rows.js";
import { drafts, sendRow, shown, tab, takeRows } from "./saving.js";
import { ask, attempt, here } from "./server.js";
import { say, state } from "./store.js";
import { characters, codeUnits, formatsOf, placeTags } from "./tags.js";
import { tellIfHeld } from "./typists.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {import("./store.js").PlacedFormat} PlacedFormat */

const WORD = /[\p{L}\p{N}\p{M}]+(?:[-'’.][\p{L}\p{N}\p{M}]+)*/gu;

/** What is selected in a field, without white space around it, or the word at the cursor; null if there is none.
 * @param {HTMLTextAreaElement} field */
function chosenPart({ value, selectionStart, selectionEnd }) {
  const selected = value.slice(selectionStart, selectionEnd);
  if (selected.trim()) {
    const start = selectionStart + (selected.length - selected.trimStart().length);
    return { start, end: start + selected.trim().length };
  }
  const word = [...value.matchAll(WORD)].find(({ index, 0: text }) => index <= selectionStart && selectionStart <= index + text.length);
  return word ? { start: word.index, end: word.index + word[0].length } : null;
}

/** Sends where all formatting of a row is that somebody has placed. @param {number} position
 * @param {(row: Row) => PlacedFormat[]} wanted @param {string} done what is said then */
function send(position, wanted, done) {
  if (tellIfHeld(position)) return;
  return attempt("Nothing was placed", async () => {
    const place = here();
    sendTyped();
    await sendRow(position);
    if (!place.isShown()) return say("Nothing was placed: another document is shown by now.");
    const row = state.rows[position];
    const body = { version: row.version, target: row.target, formats: wanted(row), writer: tab, writer_edit: ++drafts.number, person: person() };
    takeRows([await ask("PUT", `${place.row(position)}/formats`, body)], place.path);
    if (!place.isShown()) return;
    forgetTyping();
    placeTags(position);
    say(done);
  });
}

/** Puts one formatting of the source around what is selected. @param {number} position @param {number} mark */
function place(position, mark) {
  const field = viewOf(position)?.field;
  const part = field && chosenPart(field);
  if (!field || !part) return say("Select the words first that the formatting is to be around.");
  const text = field.value;
  const own = { mark, start: characters(text, part.start), end: characters(text, part.end) };
  return send(position, (row) => [...row.placed.filter((one) => one.mark !== mark), own], `Formatting of “${formatsOf(position)[mark]}” placed around “${text.slice(part.start, part.end)}”.`);
}

/** Puts the next formatting of the source that nobody has placed around what is selected. */
export function placeNext() {
  const position = state.focus;
  if (position === null || !state.rows[position]) return say("Go to a row first.");
  const formats = formatsOf(position);
  if (!formats.length) return say("The source of this row has no formatting.");
  const placed = new Set(state.rows[position].placed.map(({ mark }) => mark));
  const next = formats.findIndex((_, mark) => !placed.has(mark));
  if (next < 0) return say("All formatting is placed. Shift+Alt+B lets it go where its words go.");
  return place(position, next);
}

/** Lets all formatting of the row under the cursor go where its words go. */
export function placeNone() {
  const position = state.focus;
  if (position === null || !state.rows[position]?.placed.length) return say("No formatting of this row was placed by hand.");
  return send(position, () => [], `The formatting of row ${position + 1} goes where its words go.`);
}

/** The formatting of a row as buttons, in the row under the cursor. @param {HTMLElement} list @param {Row} row */
export function drawFormats(list, row) {
  const { position } = row;
  const formats = state.focus === position && row.target.trim() ? formatsOf(position) : [];
  const placed = new Set(row.placed.map(({ mark }) => mark));
  const shows = formats.map((words, mark) => `${words}\t${placed.has(mark)}`).join("\n");
  list.hidden = !formats.length;
  if (list.dataset.shows === shows) return;
  list.dataset.shows = shows;
  const button = (/** @type {string} */ words, /** @type {number} */ mark) => {
    const isPlaced = placed.has(mark);
    const act = () => (isPlaced ? send(position, (now) => now.placed.filter((one) => one.mark !== mark), `The formatting of “${words}” goes where its words go.`) : place(position, mark));
    const title = isPlaced ? "Placed by hand: let it go where its words go (Shift+Alt+B)" : "Put it around the selected words (Alt+B)";
    const stay = (/** @type {MouseEvent} */ event) => event.preventDefault(); // or the field would lose its selection
    return element("button", { type: "button", class: "small format-chip", "aria-pressed": String(isPlaced), title, onmousedown: stay, onclick: act }, words.slice(0, 40), element("span", { class: "tag" }, isPlaced ? " placed" : " auto"));
  };
  list.replaceChildren(...(formats.length ? [element("span", { class: "tag" }, "formatting "), ...formats.map(button)] : []));
}

/** The formatting of a row that somebody has placed, in the text as the page has it. @param {Row} row */
export function placedMarks(row) {
  const saved = state.rows[row.position];
  if (saved.target !== shown(saved).target) return [];
  return saved.placed.map(({ start, end }) => ({ kind: /** @type {const} */ ("format"), text: "", start: codeUnits(saved.target, start), end: codeUnits(saved.target, end), automatic: false }));
}
