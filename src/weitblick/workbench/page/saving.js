// @ts-check
/* Saving what is written in this tab: `Drafts` with this browser's storage, this server, and the rows of the page. */

import { lookForCorrections } from "./corrections.js";
import { Drafts, isConflict } from "./drafts.js";
import { cameBack } from "./findings.js";
import { person } from "./person.js";
import { ServerError, ask, attempt, documentPath, isAborted, reasonOf, rowPath, sentence } from "./server.js";
import { change, say, state, warn } from "./store.js";

/** @typedef {import("./store.js").Row} Row */

const AGAIN = 3000; // ms until what could not be sent is sent again
const MOST_KEPT_ALIVE = 60_000; // bytes of a request that a browser finishes after its page has gone
const SURELY_GONE = 60_000; // ms without a key, where a browser does not tell which tabs there are

/** This tab, until it is closed or loaded again. */
export const tab = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const lockOf = (/** @type {string} */ name) => `weitblick.tab.${name}`;

/** Tabs whose end is waited for. @type {Set<string>} */
const awaited = new Set();

export const drafts = new Drafts({ tab, storage: localStorage, send, answered, unkept });

/** @param {import("./drafts.js").Draft} draft @returns {Promise<import("./drafts.js").Answer>} */
async function send({ path, target, state: wanted, version, number, ask: asks, act }) {
  const body = { target, state: wanted, version, writer: tab, writer_edit: number, ask: Boolean(asks), person: person(), act };
  try {
    const row = await ask("PUT", path, body, { keepalive: JSON.stringify(body).length * 3 < MOST_KEPT_ALIVE });
    return { kind: "saved", row };
  } catch (error) {
    if (error instanceof ServerError && error.row) return { kind: "conflict", row: error.row };
    const passes = isAborted(error) || !(error instanceof ServerError) || error.isPassing;
    return { kind: passes ? "failed" : "refused", reason: reasonOf(error) };
  }
}

/** @param {import("./drafts.js").Draft} draft @param {import("./drafts.js").Answer} answer */
function answered({ path, target }, answer) {
  if (answer.kind === "saved" || answer.kind === "conflict") {
    const row = /** @type {Row & { findings?: import("./store.js").Finding[] }} */ (answer.row);
    const isShown = state.document && path === rowPath(row.position);
    if (isShown) takeRows([row], documentPath());
    if (isShown && answer.kind === "saved") lookForCorrections(row);
    if (isShown && row.findings?.length && shown(state.rows[row.position]).target === target) cameBack(row.position, target, row.findings);
    if (answer.kind === "saved" && state.status.startsWith("Not saved yet") && !drafts.isWaiting) say("Everything is saved.");
    if (answer.kind === "conflict") warn(`Row ${row.position + 1} was changed in another window. Your text is not saved: keep it, or take the other.`);
  } else if (answer.kind === "refused") warn(`Not saved: ${sentence(answer.reason)} Your text is kept here.`);
  else warn(`Not saved yet: ${sentence(answer.reason)} Your text is kept here and sent again.`);
}

function unkept() {
  warn("This browser keeps nothing (its storage is full or switched off): do not close the page before everything is saved.");
}

/** Rows as the server has them now. What is older than what is known is left out, and rows of a document that is not shown
 * any more are.
 * @param {Row[]} rows @param {string} path of their document */
export function takeRows(rows, path) {
  if (path !== documentPath()) return;
  change((now) => {
    for (const row of rows) {
      const known = now.rows[row.position];
      if (known && row.version >= known.version) now.rows[row.position] = row;
    }
  });
}

/** A row as this tab shows it: with what was written here and is not saved yet. @param {Row} row @returns {Row} */
export function shown(row) {
  const draft = drafts.drafts.size ? drafts.of(rowPath(row.position)) : undefined; // of thousands of rows: quickly
  return draft ? { ...row, target: draft.target, state: draft.state, before: null } : row;
}

/** Keeps a text for a row in this browser. Whoever wants it on the server calls `sendRow`.
 * @param {number} position @param {string} target @param {import("./drafts.js").Draft["state"]} wanted
 * @param {boolean} [asks] whether it may be confirmed only if nothing looks wrong
 * @param {import("./drafts.js").Draft["act"]} [act] how the text came about, unless it was typed */
export function keepRow(position, target, wanted, asks = false, act = null) {
  const { version } = state.rows[position];
  change(() => drafts.keep(rowPath(position), { target, state: wanted, version, ask: asks, act }));
}

/** @param {number} position */
export const sendRow = (position) => drafts.send(rowPath(position));

/** Whether two texts for a row wait for a decision. @param {number} position */
export const hasConflict = (position) => isConflict(drafts.of(rowPath(position)));

/** @param {number} position */
export function keepMine(position) {
  change(() => drafts.keepMine(rowPath(position), state.rows[position]));
  sendRow(position);
  say(`Row ${position + 1}: your text is kept.`);
}

/** @param {number} position */
export function takeTheirs(position) {
  change(() => drafts.forget(rowPath(position)));
  say(`Row ${position + 1}: the text of the other window is taken.`);
}

/** Takes over what was typed in tabs that have crashed or were closed without the server: at once, or when they are gone. */
export async function recover() {
  const prefix = `${documentPath()}/segments/`;
  const alive = await tabsAlive();
  if (!state.document || prefix !== `${documentPath()}/segments/`) return;
  const left = drafts.left(prefix).map(([, draft]) => draft);
  const here = new Set(left.filter(({ tab: other, time }) => alive?.has(other) ?? Date.now() - time < SURELY_GONE).map((draft) => draft.tab));
  if (alive) here.forEach(recoverAfter);
  let found = 0;
  change(() => {
    found = drafts.adopt(prefix, (path) => state.rows[Number(path.slice(prefix.length))], (other) => here.has(other)).length;
  });
  if (found) warn(`${found === 1 ? "A text that was" : `${found} texts that were`} typed here and not saved ${found === 1 ? "is" : "are"} back.`);
  await drafts.retry();
}

/** Takes over what a tab leaves, when it goes. @param {string} other */
async function recoverAfter(other) {
  if (awaited.has(other)) return;
  awaited.add(other);
  await navigator.locks.request(lockOf(other), () => {}); // granted once the other does not hold it any more
  awaited.delete(other);
  if (state.document) await recover();
}

/** The tabs of this browser that are open; null where the browser does not say (away from this machine without HTTPS).
 * @returns {Promise<Set<string> | null>} */
async function tabsAlive() {
  if (!navigator.locks) return null;
  const { held = [] } = await navigator.locks.query();
  return new Set(held.map(({ name }) => (name ?? "").slice(lockOf("").length)));
}

/** From now on nothing that is typed waits for longer than it must. */
export function setUpSaving() {
  navigator.locks?.request(lockOf(tab), () => new Promise(() => {})).catch(() => {}); // held as long as the tab is there
  addEventListener("pagehide", () => drafts.flush());
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && drafts.flush());
  setInterval(() => attempt("Not saved yet", () => drafts.retry()), AGAIN);
}
