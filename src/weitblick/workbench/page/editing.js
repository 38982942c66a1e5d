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
import { actOn, chooseNone, chooseOn, go } from "./row_acts.js";
import { change, isApproved, say, state } from "./store.js";
import { placeTags } from "./tags.js";
import { tellIfHeld, letGo, tellHeld, typeIn } from "./typists.js";
import { TypingHistory } from "./typing_history.js";

const TRAVEL = 800; // ms that scrolling to a row may take
const MOST_SCREENS = 3; // over which the page is scrolled; what is farther away is jumped to
const PAUSE = 400; // ms after the last key until what was typed is sent
const LINE_ENDS = /\s*[\r\n]+\s*/g;
const MOST_PAUSE = 2000; // ms of typing without a pause until it is sent all the same

/** What was typed and waits for a pause. @type {{ position: number, path: string, since: number, timer: number } | null} */
let typed = null;
/** What Esc goes back to: the row before this tab wrote in it. @type {{ position: number, target: string, state: import("./store.js").RowState } | null} */
let undoPoint = null;

/** What was typed in the row under the cursor. @type {TypingHistory | null} */
let typing = null;

export const isTyping = () => typed !== null;

/** Writes a text in a row and sends it. @param {number} position @param {string} target
 * @param {import("./drafts.js").Draft["state"]} wanted @param {boolean} [asks] whether it may be confirmed only if nothing looks wrong */
function write(position, target, wanted, asks = false) {
  keepRow(position, target, wanted, asks);
  sendTyped();
  sendRow(position);
}

/** How a text comes about that is put in a field. @type {import("./drafts.js").Draft["act"]} */
let acting = null;

/** What is in a field was typed: kept at once, sent with the next pause.
 * @param {HTMLTextAreaElement} field @param {string} [kind] of input */
function type(field, kind = "") {
  const position = positionOf(field);
  if (/[\r\n]/.test(field.value)) field.value = oneLine(field.value);
  const before = shown(state.rows[position]);
  if (typing?.position !== position) typing = new TypingHistory(position, before.target);
  typing.add({ text: field.value, cursor: field.selectionStart }, kind);
  if (undoPoint?.position !== position) undoPoint = { position, target: before.target, state: before.state };
  if (isApproved(before)) say(`Row ${position + 1} is open again. Ctrl+Enter confirms it, Esc undoes what you typed.`);
  keepRow(position, field.value, "edited", false, acting);
  hold(position);
  typeIn(position);
  if (typed && typed.position !== position) sendTyped();
  clearTimeout(typed?.timer);
  const since = typed?.since ?? performance.now();
  const wait = Math.max(0, Math.min(PAUSE, since + MOST_PAUSE - performance.now()));
  typed = { position, path: rowPath(position), since, timer: setTimeout(sendTyped, wait) };
}

/** A sentence stands on one line, as in its file. @param {string} text */
const oneLine = (text) => text.replace(LINE_ENDS, " ");

/** What was typed up to now is taken back as a step of its own, not piece by piece. */
export function forgetTyping() {
  typing = null;
}

/** Sends what waits for a pause. */
export function sendTyped() {
  if (!typed) return;
  const { position, path, timer } = typed;
  clearTimeout(timer);
  typed = null;
  drafts.send(path); // also if another document is shown by now
  if (path !== rowPath(position) || !state.rows[position]) return;
  lookAt(position);
  placeTags(position);
}

/** Puts a text in a row's field as if somebody had typed it, so that Ctrl+Z takes it back. Gives whether that was possible.
 * @param {number} position @param {string} text @param {import("./drafts.js").Draft["act"]} act */
export function replaceText(position, text, act) {
  const field = bringRow(position)?.field;
  if (!field || tellIfHeld(position)) return false;
  sendTyped(); // what was typed before is a step of its own
  field.focus({ preventScroll: true });
  field.select();
  acting = act;
  const done = text ? document.execCommand("insertText", false, text) : document.execCommand("delete");
  if (!done || field.value !== text) {
    field.value = text;
    type(field);
  }
  acting = null;
  sendTyped();
  return true;
}

/** @param {number} position @param {boolean} goOn @param {"confirmed" | "reviewed"} [wanted] */
export function confirmRow(position, goOn, wanted = "confirmed") {
  const { target } = shown(state.rows[position]);
  if (tellIfHeld(position)) return;
  if (hasConflict(position)) return say("Two windows have written this row: keep your text or take the other first.");
  if (!target.trim()) return say(`An empty translation cannot be ${wanted}.`);
  if (askFirst(position)) return focusRow(position);
  const rows = state.rows.map(shown);
  const isOpen = (/** @type {import("./store.js").Row} */ row) => row.position !== position && !isApproved(row) && isListed(row.position);
  const next = rows.find((row) => row.position > position && isOpen(row)) ?? rows.find(isOpen);
  change((now) => {
    if (goOn && next) now.focus = next.position;
  });
  write(position, target, wanted, knownOf(position) === undefined);
  letGo();
  undoPoint = null;
  forgetTyping();
  say(goOn && !next ? `All rows${state.found ? " that are shown" : ""} are confirmed.` : `Row ${position + 1} ${wanted}.`);
  if (goOn && next) focusRow(next.position);
}

/** What the button of a row does. @param {number} position */
export function settleRow(position) {
  const { target, state: now } = shown(state.rows[position]);
  if (!isApproved({ state: now })) return confirmRow(position, false);
  if (tellIfHeld(position)) return;
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
  if (!replaceText(position, point.target, null)) return viewOf(position)?.field.blur();
  writeAsBefore(position, point);
  undoPoint = null;
  forgetTyping();
  say(`Row ${position + 1} is as it was.`);
}

/** Writes a row as it was before this tab wrote in it. @param {number} position @param {NonNullable<typeof undoPoint>} point */
const writeAsBefore = (position, point) => write(position, point.target, point.state === "empty" ? "draft" : point.state);

/** The row that the model leaves alone, as this tab has told: from the first key in it on. @type {number | null} */
let held = null;
/* One message after the other: an older one never overtakes a newer. */
let telling = Promise.resolve();
/** Tells which row somebody writes in, if any: until then it follows what is confirmed. @param {number | null} position */
function hold(position) {
  if (!state.document || position === held) return;
  held = position;
  const path = `${documentPath()}/focus`;
  telling = telling.then(async () => {
    await attempt("Which row is being written was not told", () => ask("POST", path, { position, writer: tab }));
  });
}

/** @param {KeyboardEvent} event @param {number} position @returns {(() => void) | null} */
function commandOf(event, position) {
  const command = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && command) return () => confirmRow(position, !event.shiftKey);
  if (event.key === "Enter") return () => askedOf(position).length && confirmRow(position, !event.shiftKey);
  const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : null;
  if (step && event.altKey && event.shiftKey) return () => chooseOn(position, step);
  if (command && !event.altKey && /^[zy]$/i.test(event.key)) return stepKey(event, position);
  if (event.altKey && !command && event.code === "KeyS") return () => actOn("copy");
  if (event.altKey && !command && event.key === "Delete") return () => actOn("clear");
  if (event.key === "Escape" && state.chosen.size) return chooseNone;
  if (event.key === "ArrowUp" && event.altKey) return () => focusRow(nextListed(position, -1));
  if (event.key === "ArrowDown" && event.altKey) return () => focusRow(nextListed(position, 1));
  if (event.key === "Escape") return () => undo(position);
  const digit = /^Digit([1-3])$/.exec(event.code);
  if (digit && (command || event.altKey)) return () => takeAlternative(position, Number(digit[1]) - 1);
  return null;
}

/** Undoing and redoing: what was typed since the cursor came goes piece by piece, everything else by steps.
 * @param {KeyboardEvent} event @param {number} position */
function stepKey(event, position) {
  const isRedo = event.shiftKey || event.key.toLowerCase() === "y";
  return () => goBackAndForth(isRedo ? "redo" : "undo", position);
}

/** @param {"undo" | "redo"} direction @param {number} position */
function goBackAndForth(direction, position) {
  const field = viewOf(position)?.field;
  const moment = typing?.position === position && field ? typing.go(direction, field.value) : null;
  if (!moment || !field) return go(direction);
  if (tellIfHeld(position)) return;
  field.value = moment.text;
  field.setSelectionRange(moment.cursor, moment.cursor);
  if (typing?.isAtStart && undoPoint?.position === position && undoPoint.target === moment.text) return writeAsBefore(position, undoPoint);
  type(field);
}

/** The text field of a row that an event is about. @param {Event} event */
function fieldOf(event) {
  return event.target instanceof HTMLTextAreaElement && event.target.isConnected ? event.target : null;
}

export function setUpEditing() {
  const rows = $("rows");
  rows.addEventListener("input", (event) => {
    const field = fieldOf(event);
    if (field) type(field, /** @type {InputEvent} */ (event).inputType);
  });
  rows.addEventListener("beforeinput", (event) => {
    const field = fieldOf(event);
    if (!field || !/^history/.test(event.inputType)) return; // by a menu, or by shaking a phone
    event.preventDefault();
    goBackAndForth(event.inputType === "historyUndo" ? "undo" : "redo", positionOf(field));
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
    forgetTyping();
    change((now) => {
      now.focus = position;
    });
    hold(null);
    rememberCursor(position);
    showAlternatives(position);
    lookAt(position);
    placeTags(position);
  });
  rows.addEventListener("focusout", (event) => {
    const field = fieldOf(event);
    sendTyped();
    if (!field || !state.document) return;
    const position = positionOf(field);
    change((now) => {
      if (now.focus === position) now.focus = null;
    });
    hold(null);
    letGo();
  });
  rows.addEventListener("keydown", (event) => {
    const field = fieldOf(event);
    const act = field && !event.isComposing ? commandOf(event, positionOf(field)) : null;
    if (field && !act) tellHeld(event, positionOf(field));
    if (!act) return;
    event.preventDefault();
    act();
  });
}
