// @ts-check
/* Completion while typing: behind what somebody has typed the server translates the rest of the row anew. It stands there
   in grey, as CSS content in a layer of its own: no text of the page and none of the field, so that it is neither saved
   nor found nor read aloud, until somebody takes it. */

import { $, element } from "./elements.js";
import { positionOf, viewOf } from "./rows.js";
import { ask, isAborted, reasonOf, rowPath, sentence } from "./server.js";
import { change, say, state, tell } from "./store.js";

/**
 * What may follow in a row: `before` stands before the cursor, `behind` behind it, where `rest` would stand instead.
 * @typedef {{ position: number, before: string, behind: string, rest: string }} Completion
 */

const PAUSE = 60; // ms without a key until the rest is asked for
const LONGEST = 2000; // characters of a beginning that is completed
const SWITCH = "weitblick.completion"; // where the browser remembers that it is off
const NEXT_WORD = /^\s*\S+/;

let asking = new AbortController();
let timer = 0;
let hasFailed = false;
let isTaking = false; // what was offered is being put in the field, and nothing is to be asked
/** @type {HTMLElement[]} */
let drawn = [];
/** @type {unknown[]} */
let drawnFrom = [];

const isOn = () => localStorage.getItem(SWITCH) !== "off";

/** A key was pressed that changed a field. Whoever types what is offered goes on with it; else it is asked for anew.
 * @param {HTMLTextAreaElement} field */
function typed(field) {
  stopAsking();
  if (!isOn() || isTaking) return;
  const position = positionOf(field);
  const { before, behind } = split(field);
  const known = state.completion;
  const added = known?.position === position && known.behind === behind && before.startsWith(known.before) ? before.slice(known.before.length) : null;
  if (known && added !== null && known.rest.startsWith(added)) {
    const rest = known.rest.slice(added.length);
    return change((now) => (now.completion = rest ? { ...known, before, rest } : null));
  }
  forgetCompletion();
  if (before.length <= LONGEST) timer = setTimeout(() => askFor(field, position), PAUSE);
}

/** @param {HTMLTextAreaElement} field */
const split = ({ value, selectionStart }) => ({ before: value.slice(0, selectionStart), behind: value.slice(selectionStart) });

/** @param {HTMLTextAreaElement} field @param {number} position */
async function askFor(field, position) {
  if (!field.isConnected) return; // another document is shown by now
  const { signal } = (asking = new AbortController());
  const { before, behind } = split(field);
  try {
    const { rest } = await ask("POST", `${rowPath(position)}/completion`, { prefix: before }, { signal });
    hasFailed = false;
    const now = split(field);
    const isLate = signal.aborted || document.activeElement !== field || now.before !== before || now.behind !== behind;
    if (isLate || !rest.trim() || rest.trim() === behind.trim()) return;
    change((known) => (known.completion = { position, before, behind, rest }));
  } catch (error) {
    if (isAborted(error)) return;
    if (!hasFailed) tell(`What you type is not completed: ${sentence(reasonOf(error))}`);
    hasFailed = true;
  }
}

function stopAsking() {
  clearTimeout(timer);
  asking.abort();
}

/** Nothing is offered any more, nor will be what was asked for. */
export function forgetCompletion() {
  stopAsking();
  if (state.completion) change((now) => (now.completion = null));
}

/** Takes what is offered, as if it had been typed: one step for Ctrl+Z. @param {boolean} all else the next word */
function take(all) {
  const { completion } = state;
  const field = completion && viewOf(completion.position)?.field;
  if (!completion || !field) return;
  const { before, behind, rest } = completion;
  const text = all ? rest : (NEXT_WORD.exec(rest)?.[0] ?? rest);
  if (behind) {
    forgetCompletion();
    isTaking = true;
  }
  field.setSelectionRange(0, 0); // what was typed before is another step for Ctrl+Z
  field.setSelectionRange(before.length, field.value.length);
  document.execCommand("insertText", false, text);
  isTaking = false;
}

/** Switches completion off or on, which the browser remembers. */
export function switchCompletion() {
  const on = !isOn();
  localStorage.setItem(SWITCH, on ? "on" : "off");
  forgetCompletion();
  say(on ? "What you type is completed. Tab takes the next word, Alt+Right all." : "What you type is not completed any more.");
  drawSwitch();
}

function drawSwitch() {
  $("completion-button").setAttribute("aria-pressed", String(isOn()));
}

/** @param {KeyboardEvent} event */
function actOnKey(event) {
  const { completion } = state;
  if (!completion || event.isComposing || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const wantsAll = event.key === "ArrowRight" && event.altKey;
  const wantsWord = event.key === "Tab" && !event.altKey && !completion.behind;
  if (!wantsAll && !wantsWord) return;
  event.preventDefault();
  take(wantsAll);
}

/** The cursor has gone somewhere else, where something else would follow. */
function cursorMoved() {
  const { completion } = state;
  if (!completion) return;
  const field = viewOf(completion.position)?.field;
  const isThere = field && document.activeElement === field && field.selectionStart === field.selectionEnd;
  if (!isThere || split(field).before !== completion.before) forgetCompletion();
}

export function drawCompletion() {
  const { completion } = state;
  const view = completion ? viewOf(completion.position) : undefined;
  const from = completion && view ? [completion, view.element] : [];
  if (from.length === drawnFrom.length && from.every((value, index) => value === drawnFrom[index])) return;
  drawnFrom = from;
  for (const node of drawn) node.remove();
  drawn = [];
  if (!completion || !view) return;
  const { before, behind, rest } = completion;
  const field = /** @type {HTMLElement} */ (view.field.parentElement);
  const grey = element("span", { class: "rest", "data-text": rest });
  if (behind) {
    const line = element("p", { class: "rest-line", "aria-hidden": "true", lang: field.lang, dir: field.dir }, grey);
    field.after(line);
    drawn.push(line);
  } else {
    const layer = element("div", { class: "mirror offered", "aria-hidden": "true" }, element("span", { "data-text": before }), grey);
    field.prepend(layer);
    drawn.push(layer);
  }
  const button = (/** @type {string} */ name, /** @type {string} */ title, /** @type {boolean} */ all) =>
    element("button", { type: "button", class: "small", tabindex: -1, title, onclick: () => take(all), onmousedown: (/** @type {Event} */ event) => event.preventDefault() }, name);
  const buttons = element("div", { class: "take" }, ...(behind ? [] : [button("Next word", "Take the next word (Tab)", false)]), button(behind ? "Take the rest" : "All", "Take all (Alt+Right)", true));
  view.element.querySelector(".state")?.append(buttons);
  drawn.push(buttons);
}

export function setUpCompletion() {
  const rows = $("rows");
  rows.addEventListener("input", (event) => {
    const field = event.target;
    if (field instanceof HTMLTextAreaElement && !(/** @type {InputEvent} */ (event).isComposing)) typed(field);
  });
  rows.addEventListener("compositionend", (event) => {
    if (event.target instanceof HTMLTextAreaElement) typed(event.target);
  });
  rows.addEventListener("keydown", actOnKey);
  rows.addEventListener("focusout", forgetCompletion);
  document.addEventListener("selectionchange", cursorMoved);
  $("completion-button").addEventListener("click", switchCompletion);
  drawSwitch();
}
