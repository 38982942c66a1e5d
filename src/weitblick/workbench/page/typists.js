// @ts-check
/* Two people in one document: whoever types in a row holds it, and nobody else types there until it is free. The server
   is told while keys are pressed; what it says of others ends by itself. What is saved is decided by versions alone. */

import { element } from "./elements.js";
import { person } from "./person.js";
import { sendRow, tab } from "./saving.js";
import { ask, attempt, documentPath } from "./server.js";
import { change, say, state, tell, warn } from "./store.js";

/** Who types in a row, as the server tells it. @typedef {{ position: number, writer: string, browser: string | null, person: string | null, seconds: number }} Typing */

const BROWSER = "weitblick.browser"; // where this browser keeps what it is called
const AGAIN = 2000; // ms of typing after which it is told again
const SLACK = 300; // ms that news may be late

/** @type {Map<number, number>} by row, what ends it if nothing more is heard */
const timers = new Map();
/** What the server was told last: the row that is typed in, and when. @type {{ position: number, path: string, at: number } | null} */
let told = null;
/* One message after the other: an older one never overtakes a newer. */
let telling = Promise.resolve();

function browser() {
  const known = localStorage.getItem(BROWSER);
  if (known) return known;
  localStorage.setItem(BROWSER, tab);
  return localStorage.getItem(BROWSER);
}

/** Somebody types in a row here: the others are told. @param {number} position */
export function typeIn(position) {
  const path = `${documentPath()}/typing`;
  if (told?.position === position && told.path === path && performance.now() - told.at < AGAIN) return;
  told = { position, path, at: performance.now() };
  inTurn("Others were not told that you type here", async () => {
    const { holder } = await ask("POST", path, { position, writer: tab, browser: browser(), person: person() });
    if (!holder || path !== `${documentPath()}/typing`) return;
    hear(holder);
    warn(`${nameOf(holder)} types in row ${position + 1}, too. What you have typed there is kept.`);
  });
}

/** Nobody types in the row here any more: it is free as soon as what was typed has been sent. */
export function letGo() {
  if (!told) return;
  const { position, path } = told;
  told = null;
  const sent = path === `${documentPath()}/typing` && state.rows[position] ? sendRow(position) : Promise.resolve();
  inTurn("Others were not told that a row is free; it is in some seconds", async () => {
    await sent;
    await ask("POST", path, { position: null, writer: tab });
  });
}

/** @param {string} failure @param {() => Promise<unknown>} act */
function inTurn(failure, act) {
  telling = telling.then(async () => {
    await attempt(failure, act);
  });
}

/** @param {Typing} typing */
const isMine = (typing) => typing.writer === tab || (typing.browser === browser() && typing.person === person());

/** Somebody types in a row, or does not any more. @param {Typing} typing */
export function hear(typing) {
  if (isMine(typing)) return;
  const { position, seconds } = typing;
  clearTimeout(timers.get(position));
  if (seconds <= 0) return free(position);
  timers.set(position, setTimeout(() => free(position), seconds * 1000 + SLACK));
  const isNew = !state.typists.has(position);
  change((now) => (now.typists = new Map(now.typists).set(position, typing)));
  if (isNew && state.focus === position) tell(`${nameOf(typing)} types in this row.`);
}

/** All that is known of others, when a document is opened. @param {Typing[]} typing */
export function hearAll(typing) {
  for (const timer of timers.values()) clearTimeout(timer);
  timers.clear();
  change((now) => (now.typists = new Map()));
  typing.forEach(hear);
}

/** @param {number} position */
function free(position) {
  clearTimeout(timers.get(position));
  timers.delete(position);
  if (!state.typists.has(position)) return;
  change((now) => {
    now.typists = new Map(now.typists);
    now.typists.delete(position);
  });
  if (state.focus === position) tell(`Row ${position + 1} is free.`);
}

/** @param {{ person: string | null }} typing */
const nameOf = ({ person: name }) => name ?? "Somebody";

/** Whether somebody else types in a row; whoever wants to write there is told. @param {number} position */
export function tellIfHeld(position) {
  const typing = state.typists.get(position);
  if (!typing) return false;
  say(`${nameOf(typing)} types in row ${position + 1}. It is free some seconds after that.`);
  return true;
}

export const buildTypist = () => element("p", { class: "typist", hidden: true });

/** In a row that somebody else types in: the name; nobody can type there. @param {HTMLElement} place
 * @param {HTMLTextAreaElement} field @param {number} position */
export function drawTypist(place, field, position) {
  const typing = state.typists.get(position);
  field.readOnly = typing !== undefined;
  place.hidden = !typing;
  const text = typing ? `${nameOf(typing)} is typing here` : "";
  if (place.textContent !== text) place.textContent = text;
}

/** Whoever presses a key in a row that is held is told why nothing happens. @param {KeyboardEvent} event @param {number} position */
export function tellHeld(event, position) {
  const writes = event.key.length === 1 || event.key === "Backspace" || event.key === "Delete";
  if (writes && !event.ctrlKey && !event.metaKey && !event.altKey && state.typists.has(position)) tellIfHeld(position);
}
