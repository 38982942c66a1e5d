// @ts-check
/* Finding rows: by text, state, changes, findings and comments. What was found is shown, and nothing else, until somebody looks for
   something else: moving and confirming go from one found row to the next, and a row stays that is no longer what was
   looked for. */

import { openDialog } from "./dialogs.js";
import { focusRow } from "./editing.js";
import { $, count } from "./elements.js";
import { travel } from "./rows.js";
import { drafts } from "./saving.js";
import { ask, attempt, documentPath } from "./server.js";
import { change, say, state } from "./store.js";

const PAUSE = 300; // ms after the last key until rows are looked for
const JUMP = 100; // ms in which the rows may move: others are shown

let timer = 0;
let looks = 0; // counts them: an answer that comes late is not shown

/** @param {string} id */
const input = (id) => /** @type {HTMLInputElement} */ ($(id));
/** @param {string} id */
const select = (id) => /** @type {HTMLSelectElement} */ ($(id));

/** Whether a row is shown. @param {number} position */
export const isListed = (position) => state.found === null || state.found.has(position);

/** The next row that is shown, or the one before. @param {number} position @param {1 | -1} step */
export function nextListed(position, step) {
  for (let next = position + step; state.rows[next]; next += step) if (isListed(next)) return next;
  return position;
}

/** Shows a row that somebody goes to, although it is none of those that were found. @param {number} position */
export function reveal(position) {
  if (isListed(position) || !state.rows[position]) return;
  change((now) => (now.found = new Set([...(now.found ?? []), position])));
}

/** What the form asks for; null: nothing, so that all rows are shown. */
function wanted() {
  const text = input("find-text").value;
  const chosen = select("find-state").value;
  const [changed, findings, comments] = ["find-changed", "find-findings", "find-comments"].map((id) => input(id).checked);
  if (!text && !chosen && !changed && !findings && !comments) return null;
  return { text, side: select("find-side").value, expression: input("find-expression").checked, states: chosen ? [chosen] : [], changed, findings, comments };
}

/** Looks for rows and shows them. Gives whether that was possible. */
async function look() {
  clearTimeout(timer);
  const number = ++looks;
  const body = wanted();
  if (!body) return show(null);
  const done = await attempt("Rows could not be looked for", async () => {
    const path = documentPath();
    await drafts.retry();
    const { positions } = await ask("POST", `${path}/search`, body);
    if (number === looks) show(new Set(positions));
  });
  if (!done && number === looks) $("find-hits").textContent = "";
  return done;
}

/** @param {Set<number> | null} found */
function show(found) {
  travel(JUMP);
  change((now) => (now.found = found));
  const hits = found ? `${found.size.toLocaleString("en")} of ${count(state.rows.length, "row", "rows")}` : "";
  $("find-hits").textContent = found && !found.size ? "no row found" : hits;
  return true;
}

/** Opens the form, with the words that are selected. */
export function openFind() {
  const words = selectedWords();
  $("find").hidden = false;
  $("find-button").setAttribute("aria-expanded", "true");
  if (words) input("find-text").value = words;
  input("find-text").focus();
  input("find-text").select();
  if (wanted()) look();
}

/** All rows are shown again. The cursor stays in the row that it was in. */
export function closeFind() {
  const was = state.focus ?? firstFound();
  forgetFind();
  if (was !== null && !$("sheet").hidden) focusRow(was);
}

/** Another document is opened: nothing is looked for in it yet. */
export function forgetFind() {
  clearTimeout(timer);
  looks += 1;
  /** @type {HTMLFormElement} */ ($("find")).reset();
  $("find").hidden = true;
  $("find-button").setAttribute("aria-expanded", "false");
  show(null);
}

const firstFound = () => (state.found?.size ? Math.min(...state.found) : null);

/** The words that somebody has selected, in a field or elsewhere on the page. */
export function selectedWords() {
  const active = document.activeElement;
  const words = active instanceof HTMLTextAreaElement ? active.value.slice(active.selectionStart, active.selectionEnd) : String(getSelection() ?? "");
  return words.trim().replace(/\s+/g, " ").slice(0, 500);
}

export function openGoTo() {
  const field = input("goto-number");
  field.max = String(state.rows.length);
  field.value = String((state.focus ?? 0) + 1);
  $("goto-count").textContent = `of ${state.rows.length.toLocaleString("en")}`;
  openDialog("goto-dialog");
  field.select();
}

function goTo() {
  const number = Number(input("goto-number").value);
  if (!Number.isInteger(number) || !state.rows[number - 1]) return say(`There is no such row: 1 to ${state.rows.length}.`);
  /** @type {HTMLDialogElement} */ ($("goto-dialog")).close();
  focusRow(number - 1);
}

export function setUpFind() {
  const form = $("find");
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(look, event.target === $("find-text") ? PAUSE : 0);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const first = (await look()) ? firstFound() : null;
    if (first !== null) focusRow(first);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    closeFind();
  });
  $("find-button").addEventListener("click", () => ($("find").hidden ? openFind() : closeFind()));
  $("find-close").addEventListener("click", closeFind);
  $("goto-button").addEventListener("click", openGoTo);
  $("goto-form").addEventListener("submit", (event) => {
    event.preventDefault();
    goTo();
  });
}
