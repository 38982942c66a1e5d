// @ts-check
/* Typing, confirming, moving, undoing. */

import { showAlternatives, takeAlternative } from "./alternatives.js";
import { $ } from "./elements.js";
import { askFirst, askedOf, knownOf, lookAt } from "./findings.js";
import { isListed, nextListed, reveal } from "./find.js";
import { calm, coveredHeight } from "./panel.js";
import { bringRow, positionOf, travel, viewOf } from "./rows.js";
import { drafts, hasConflict, keepRow, sendRow, shown, tab } from "./saving.js";
import { ask, attempt, documentPath, rowPath } from "./server.js";
import { change, say, state } from "./store.js";

const TRAVEL = 800; // ms that scrolling to a row may take
const MOST_SCREENS = 3; // over which the page is scrolled; what is farther away is jumped to
const PAUSE = 400; // ms after the last key until what was typed is sent
const LINE_ENDS = /\s*[\r\n]+\s*/g;
const MOST_PAUSE = 2000; // ms of typing without a pause until it is sent all the same

/** What was typed and waits for a pause. @type {{ position: number, since: number, timer: number } | null} */
let typed = null;
/** What Esc goes back to: the row before this tab wrote in it. @type {{ position: number, target: string, state: import("./store.js").RowState } | null} */
let undoPoint = null;

export const isTyping = () => typed !== null;

/** Writes a text in a row and sends it. @param {number} position @param {string} target
 * @param {"draft" | "edited" | "confirmed"} wanted @param {boolean} [asks] whether it may be confirmed only if nothing looks wrong */
function write(position, target, wanted, asks = false) {
  keepRow(position, target, wanted, asks);
  sendTyped();
  sendRow(position);
}

/** What is in a field was typed: kept at once, sent with the next pause. @param {HTMLTextAreaElement} field */
function type(field) {
  const position = positionOf(field);
  if (/[\r\n]/.test(field.value)) field.value = oneLine(field.value);
  const before = shown(state.rows[position]);
  if (undoPoint?.position !== position) undoPoint = { position, target: before.target, state: before.state };
  if (before.state === "confirmed") say(`Row ${position + 1} is open again. Ctrl+Enter confirms it, Esc undoes what you typed.`);
  keepRow(position, field.value, "edited");
  if (typed && typed.position !== position) sendTyped();
  clearTimeout(typed?.timer);
  const since = typed?.since ?? performance.now();
  const wait = Math.max(0, Math.min(PAUSE, since + MOST_PAUSE - performance.now()));
  typed = { position, since, timer: setTimeout(sendTyped, wait) };
}

/** A sentence stands on one line, as in its file. @param {string} text */
const oneLine = (text) => text.replace(LINE_ENDS, " ");

/** Sends what waits for a pause. */
function sendTyped() {
  if (!typed) return;
  const { position, timer } = typed;
  clearTimeout(timer);
  typed = null;
  if (!state.rows[position]) return;
  sendRow(position);
  lookAt(position);
}

/** Puts a text in a row's field as if somebody had typed it, so that Ctrl+Z takes it back. @param {number} position @param {string} text */
export function replaceText(position, text) {
  const field = bringRow(position)?.field;
  if (!field) return;
  field.focus({ preventScroll: true });
  field.select();
  const done = text ? document.execCommand("insertText", false, text) : document.execCommand("delete");
  if (!done || field.value !== text) {
    field.value = text;
    type(field);
  }
  sendTyped();
}

/** @param {number} position @param {boolean} goOn */
export function confirmRow(position, goOn) {
  const { target } = shown(state.rows[position]);
  if (hasConflict(position)) return say("Two windows have written this row: keep your text or take the other first.");
  if (!target.trim()) return say("An empty translation cannot be confirmed.");
  if (askFirst(position)) return focusRow(position);
  const rows = state.rows.map(shown);
  const isOpen = (/** @type {import("./store.js").Row} */ row) => row.position !== position && row.state !== "confirmed" && isListed(row.position);
  const next = rows.find((row) => row.position > position && isOpen(row)) ?? rows.find(isOpen);
  change((now) => {
    if (goOn && next) now.focus = next.position; // told with the confirmation, so that the row is left alone
  });
  write(position, target, "confirmed", knownOf(position) === undefined);
  undoPoint = null;
  say(goOn && !next ? `All rows${state.found ? " that are shown" : ""} are confirmed.` : `Row ${position + 1} confirmed.`);
  if (goOn && next) focusRow(next.position);
}

/** What the button of a row does. @param {number} position */
export function settleRow(position) {
  const { target, state: now } = shown(state.rows[position]);
  if (now !== "confirmed") return confirmRow(position, false);
  write(position, target, "edited");
  say(`Row ${position + 1} is open again.`);
}

/** @param {number} position */
export function focusRow(position) {
  reveal(position);
  const view = bringRow(position);
  if (!view) return;
  view.field.focus({ preventScroll: true });
  const box = view.element.getBoundingClientRect();
  if (box.top < 120 || box.bottom > innerHeight - coveredHeight() - 40) {
    const way = box.top - (innerHeight - coveredHeight()) / 3;
    const isFar = Math.abs(way) > MOST_SCREENS * innerHeight;
    if (!isFar) travel(TRAVEL);
    scrollBy({ top: way, behavior: isFar ? "instant" : calm() ? "auto" : "smooth" });
  }
}

const CURSOR = "weitblick.cursor."; // where the browser remembers the row of each document that held the cursor

/** @param {number} position @param {string | null} [owner] the document, if it is another than the one that is shown */
export function rememberCursor(position, owner = state.document) {
  if (owner) localStorage.setItem(CURSOR + owner, String(position));
}

/** Goes to where the cursor was when this document was last worked on. Whoever is somewhere else already only sees it. */
export function resume() {
  const kept = localStorage.getItem(CURSOR + state.document);
  const view = kept === null ? undefined : bringRow(Number(kept));
  if (!view || document.querySelector("dialog[open]")) return;
  if (document.activeElement === document.body) focusRow(Number(kept));
  else view.element.scrollIntoView({ block: "center", behavior: "instant" });
}

/** Undoes what this tab wrote in a row since the cursor came; if that is nothing, leaves the row. @param {number} position */
function undo(position) {
  const now = shown(state.rows[position]);
  const point = undoPoint?.position === position ? undoPoint : null;
  const isOurs = drafts.of(rowPath(position)) !== undefined || state.rows[position].writer === tab;
  if (!point || !isOurs || (point.target === now.target && point.state === now.state)) return viewOf(position)?.field.blur();
  replaceText(position, point.target);
  write(position, point.target, point.state === "empty" ? "draft" : point.state);
  undoPoint = null;
  say(`Row ${position + 1} is as it was.`);
}

/* Where the cursor is, one message after the other: an older one never overtakes a newer. */
let telling = Promise.resolve();
/** @param {number | null} position */
function tellFocus(position) {
  if (!state.document) return;
  const path = `${documentPath()}/focus`;
  telling = telling.then(async () => {
    await attempt("Where the cursor is was not told", () => ask("POST", path, { position, writer: tab }));
  });
}

/** @param {KeyboardEvent} event @param {number} position @returns {(() => void) | null} */
function commandOf(event, position) {
  const command = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && command) return () => confirmRow(position, !event.shiftKey);
  if (event.key === "Enter") return () => askedOf(position).length && confirmRow(position, !event.shiftKey);
  if (event.key === "ArrowUp" && event.altKey) return () => focusRow(nextListed(position, -1));
  if (event.key === "ArrowDown" && event.altKey) return () => focusRow(nextListed(position, 1));
  if (event.key === "Escape") return () => undo(position);
  const digit = /^Digit([1-3])$/.exec(event.code);
  if (digit && (command || event.altKey)) return () => takeAlternative(position, Number(digit[1]) - 1);
  return null;
}

/** The text field of a row that an event is about. @param {Event} event */
function fieldOf(event) {
  return event.target instanceof HTMLTextAreaElement && event.target.isConnected ? event.target : null;
}

export function setUpEditing() {
  const rows = $("rows");
  rows.addEventListener("input", (event) => {
    const field = fieldOf(event);
    if (field) type(field);
  });
  rows.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!fieldOf(event) || !/[\r\n]/.test(text)) return;
    event.preventDefault();
    document.execCommand("insertText", false, oneLine(text.trim()));
  });
  rows.addEventListener("focusin", (event) => {
    const field = fieldOf(event);
    if (!field) return;
    const position = positionOf(field);
    undoPoint = null;
    change((now) => {
      now.focus = position;
    });
    tellFocus(position);
    rememberCursor(position);
    showAlternatives(position);
    lookAt(position);
  });
  rows.addEventListener("focusout", (event) => {
    const field = fieldOf(event);
    sendTyped();
    if (!field || !state.document) return;
    const position = positionOf(field);
    change((now) => {
      if (now.focus === position) now.focus = null;
    });
    const next = event.relatedTarget;
    if (!(next instanceof HTMLTextAreaElement && next.closest("#rows"))) tellFocus(state.focus); // else the next one tells
  });
  rows.addEventListener("keydown", (event) => {
    const field = fieldOf(event);
    const act = field && !event.isComposing ? commandOf(event, positionOf(field)) : null;
    if (!act) return;
    event.preventDefault();
    act();
  });
}
