// @ts-check
/* Terms by a key: words of a row and their translation become a term of the project. It is said first how many rows that
   concerns, drafts are translated again with it, and all of it can be taken back. */

import { drawCorrections, settleCorrection } from "./corrections.js";
import { openDialog } from "./dialogs.js";
import { focusRow } from "./editing.js";
import { $, count } from "./elements.js";
import { positionOf } from "./rows.js";
import { drafts, takeRows } from "./saving.js";
import { ask, attempt, here } from "./server.js";
import { change, languages, say, state } from "./store.js";
import { loadTermMarks } from "./term_marks.js";

const PAUSE = 300; // ms after the last key until the rows are counted
const MOST_WORDS = 500; // characters

/** @typedef {{ side: "source" | "target", words: string, position: number }} Selected */

/** What was selected last: a button that is pressed takes the selection away. @type {Selected | null} */
let selected = null;
/** The row that the dialog was opened in. @type {number | null} */
let origin = null;
/** The document that it was opened in. */
let place = here();
let timer = 0;
let looks = 0; // counts them: an answer that comes late is not shown

/** @param {string} id */
const input = (id) => /** @type {HTMLInputElement} */ ($(id));
const asked = () => ({ source: input("term-source").value.trim(), target: input("term-target").value.trim() });

/** Remembers words that are selected in one of the columns. */
function noteSelection() {
  const active = document.activeElement;
  if (active instanceof HTMLTextAreaElement && active.closest("#rows")) {
    note("target", active.value.slice(active.selectionStart, active.selectionEnd), active);
    return;
  }
  const selection = getSelection();
  const cell = selection?.anchorNode?.parentElement?.closest("#rows .source");
  if (cell && selection) note("source", String(selection), cell);
}

/** @param {"source" | "target"} side @param {string} words @param {Element} inside */
function note(side, words, inside) {
  const shorter = words.trim().replace(/\s+/g, " ").slice(0, MOST_WORDS);
  if (shorter) selected = { side, words: shorter, position: positionOf(inside) };
}

/** Opens the dialog with the words that are selected, or with what was corrected last. Words of the other column are
 * typed, with the row in view. */
export function openTerm() {
  noteSelection();
  if (state.focus !== null && selected?.position !== state.focus) selected = null; // of long ago
  if (!selected && state.corrected.length) return openCorrection();
  origin = selected?.position ?? state.focus;
  openWith(selected?.side === "source" ? selected.words : "", selected?.side === "target" ? selected.words : "");
}

/** Opens the dialog with what was corrected last. */
function openCorrection() {
  const [{ position, source, target }] = state.corrected;
  origin = position;
  openWith(source, target);
}

/** @param {string} sourceWords @param {string} targetWords */
function openWith(sourceWords, targetWords) {
  place = here();
  input("term-source").value = sourceWords;
  input("term-target").value = targetWords;
  selected = null;
  const { source, target } = languages();
  $("term-row").textContent = origin === null ? "" : `Row ${origin + 1}: ${state.rows[origin].source}`;
  for (const [id, language] of /** @type {const} */ ([["term-row", source], ["term-source", source], ["term-target", target]])) {
    $(id).lang = language.code;
    $(id).dir = language.direction;
  }
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur(); // the row may change, too
  openDialog("term-dialog");
  input(input("term-source").value ? "term-target" : "term-source").focus();
  preview();
}

/** Says how many rows the term concerns. */
async function preview() {
  clearTimeout(timer);
  const number = ++looks;
  const body = asked();
  $("term-hits").textContent = "";
  /** @type {HTMLButtonElement} */ ($("term-apply")).disabled = !body.source || !body.target;
  if (!body.source || !body.target) return;
  await attempt("The rows are not counted", async () => {
    const found = await ask("POST", `${place.path}/terms/preview`, body);
    if (number === looks) $("term-hits").textContent = described(found);
  });
}

/** @param {{ drafts: number[], left: number[], followed: number[], known: string | null }} found */
function described({ drafts: concerned, left, followed, known }) {
  const parts = [`${count(concerned.length, "draft is", "drafts are")} translated again`];
  if (left.length) parts.push(`${count(left.length, "row", "rows")} that you have written ${left.length === 1 ? "is" : "are"} left`);
  if (followed.length) parts.push(`${count(followed.length, "row has", "rows have")} it already`);
  const instead = known !== null && known !== asked().target ? ` The project says ${known} so far.` : "";
  return `${parts.join(", ")}.${instead}`;
}

/** Makes it a term of the project. @param {string} source @param {string} target
 * @param {ReturnType<typeof here>} of the document whose drafts are translated again */
export async function makeTerm(source, target, of = here()) {
  await drafts.retry();
  const { pair } = await ask("POST", `${of.path}/terms`, { source, target });
  change((now) => {
    if (!of.isShown()) return;
    now.term = { pair, source, target };
    now.corrected = now.corrected.filter((one) => one.source !== source);
  });
  loadTermMarks();
  say(`${source} = ${target} is a term now.`);
}

function apply() {
  const { source, target } = asked();
  if (!source || !target) return say("A term needs source words and their translation.");
  return attempt("It is no term", async () => {
    await makeTerm(source, target, place);
    origin = null; // the row may change: its field is not gone back to
    /** @type {HTMLDialogElement} */ ($("term-dialog")).close();
  });
}

/** Takes the latest term back, and what it has changed. */
export function withdrawTerm() {
  const { term } = state;
  if (!term) return say("There is no new term to take back.");
  return attempt("The term is not taken back", async () => {
    const { path } = here();
    const { rows } = await ask("DELETE", `${path}/terms/${term.pair}`);
    takeRows(rows, path);
    change((now) => (now.term = now.term === term ? null : now.term));
    loadTermMarks();
    say(`${term.source} is no longer a term. ${count(rows.length, "sentence is", "sentences are")} as before.`);
  });
}

/** Under the head: the latest term, and a way back. */
export function drawTerm() {
  const { term } = state;
  $("term-made").hidden = !term;
  $("term-text").textContent = term ? `Term: ${term.source} = ${term.target}` : "";
  drawCorrections();
}

export function setUpTerms() {
  document.addEventListener("selectionchange", noteSelection);
  $("term-button").addEventListener("click", openTerm);
  $("corrected-term").addEventListener("click", openCorrection);
  $("corrected-leave").addEventListener("click", settleCorrection);
  $("term-withdraw").addEventListener("click", withdrawTerm);
  $("term-keep").addEventListener("click", () => change((now) => (now.term = null)));
  const form = $("term-form");
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(preview, PAUSE);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  $("term-dialog").addEventListener("close", () => origin !== null && place.isShown() && focusRow(origin));
}
