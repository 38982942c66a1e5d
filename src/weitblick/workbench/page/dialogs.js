// @ts-check
/* Dialogs: the keys, and what a document can be exported as. */

import { $, element } from "./elements.js";
import { listFindings } from "./findings.js";
import { shown } from "./saving.js";
import { documentPath } from "./server.js";
import { change, state } from "./store.js";

const KEYS = /** @type {const} */ ([
  [["Ctrl", "Enter"], "confirm, and go to the next open row; what looks wrong is asked once"],
  [["Ctrl", "Shift", "Enter"], "confirm, and stay"],
  [["Alt", "↑"], "row above"],
  [["Alt", "↓"], "row below"],
  [["Ctrl", "1 – 3"], "take an alternative (Alt as well)"],
  [["Alt", "R"], "mark as reviewed"],
  [["Alt", "C"], "comment on the row"],
  [["Alt", "H"], "what the row has been: draft, edits, review, with who and when"],
  [["Alt", "S"], "copy the source"],
  [["Alt", "Delete"], "clear the translation"],
  [["Alt", "I"], "insert the next placeholder of the source that is missing"],
  [["Alt", "G"], "insert the next term of the source that is missing"],
  [["Alt", "B"], "put the next formatting of the source around the selected words (Shift as well: all of it where its words go)"],
  [["Alt", "M"], "what differs from the sentence that was matched"],
  [["Shift", "Alt", "↑ ↓"], "choose several rows, also by their numbers; the keys above are for all of them"],
  [["Ctrl", "Z"], "take back what was typed, then the latest step"],
  [["Ctrl", "Y"], "do it again (Ctrl+Shift+Z as well)"],
  [["Ctrl", "Shift", "F"], "find rows by text, state, changes, findings and comments"],
  [["Ctrl", "H"], "replace in translations"],
  [["Ctrl", "G"], "go to a row by its number"],
  [["Ctrl", "K"], "concordance: where words stand in documents, memory and glossary"],
  [["Alt", "T"], "make a term of the words that are selected, in either column, or of your latest correction"],
  [["Alt", "V"], "what the translated file looks like"],
  [["Tab"], "take the next word of what is offered in grey"],
  [["Alt", "→"], "take all of it"],
  [["Alt", "P"], "offer what may follow while you type, or not"],
  [["Esc"], "undo what was typed in this row; then leave it"],
]);
const LETTERS = /** @type {const} */ ([
  [["n"], "next changed sentence"],
  [["p"], "previous changed sentence"],
  [["k"], "keep the sentence as it was"],
  [["a"], "accept its change"],
  [["u"], "take the latest step back"],
  [["r"], "do it again"],
  [["?"], "this list"],
]);

/** Kind, name, what it is, and what is still missing for it. @type {[string, string, string, () => string][]} */
const EXPORTS = [
  ["file", "Translated file", "the file as it came, with the translation in place of its text", () => (hasRow("empty") ? "not all rows are translated yet" : "")],
  ["xliff", "XLIFF", "every row, its state and its comments, for other translation tools; can be read back", () => ""],
  ["review", "Review table", "every row in a table for Word, to be changed and commented there; can be read back", () => ""],
  ["tmx", "TMX", "the confirmed rows, as a translation memory", () => (hasRow("confirmed") || hasRow("reviewed") ? "" : "no row is confirmed yet")],
  ["jsonl", "JSONL", "every row and its state, for the commands of weitblick", () => ""],
];

/** @param {import("./store.js").RowState} name */
const hasRow = (name) => state.rows.some((row) => shown(row).state === name);

/** @param {string} name */
export function openDialog(name) {
  const dialog = /** @type {HTMLDialogElement} */ ($(name));
  if (dialog.open) return;
  change((now) => (now.status = "")); // what was said before is not about the dialog
  dialog.showModal();
}

export const openHelp = () => openDialog("help");

function openExports() {
  const link = (/** @type {typeof EXPORTS[number]} */ [kind, name, what, missing]) => {
    const reason = missing();
    const named = reason ? element("span", {}, name) : element("a", { href: `${documentPath()}/export/${kind}`, download: "" }, name);
    return element("li", {}, named, element("span", { class: "quiet" }, reason ? `${what}: ${reason}` : what));
  };
  $("export-links").replaceChildren(...EXPORTS.map(link));
  openDialog("export-dialog");
  listFindings();
}

/** @param {typeof KEYS | typeof LETTERS} keys */
const keyList = (keys) =>
  element("dl", {}, ...keys.map(([names, what]) => element("div", {}, element("dt", {}, ...names.flatMap((name) => [element("kbd", {}, name), " "])), element("dd", {}, what))));

export function setUpDialogs() {
  $("keys").append(keyList(KEYS), element("p", { class: "quiet" }, "Outside text fields, which Esc leaves:"), keyList(LETTERS));
  $("help-button").addEventListener("click", openHelp);
  $("export-button").addEventListener("click", openExports);
}

/** The status line. A dialog lies over it, and says it itself. */
export function drawStatus() {
  $("announcement").textContent = state.status;
  const open = document.querySelector("dialog[open] .dialog-status");
  if (open) open.textContent = state.status;
}
