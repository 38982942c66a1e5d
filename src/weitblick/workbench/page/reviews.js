// @ts-check
/* Reading a review back: a table from Word, or XLIFF, that was exported here. */

import { $, count } from "./elements.js";
import { person } from "./person.js";
import { drafts, tab, takeRows } from "./saving.js";
import { ask, attempt, documentPath } from "./server.js";
import { say } from "./store.js";

/** @param {File} file */
function read(file) {
  const form = new FormData();
  form.append("file", file);
  form.append("writer", tab);
  const name = person();
  if (name) form.append("person", name);
  return attempt(`${file.name} is not read`, async () => {
    const path = documentPath();
    await drafts.retry();
    const { rows, edited, reviewed, left, comments } = await ask("POST", `${path}/reviews`, form);
    takeRows(rows, path);
    if (!rows.length) return say(`${file.name} changes nothing.`);
    const parts = [`${count(edited.length, "row", "rows")} edited, ${reviewed.length} reviewed, ${count(comments, "comment", "comments")}.`];
    if (left.length) parts.push(`${count(left.length, "row was", "rows were")} written here meanwhile: the review's text is a comment there.`);
    /** @type {HTMLDialogElement} */ ($("export-dialog")).close();
    say(`${parts.join(" ")} Undo takes all of it back.`);
  });
}

export function setUpReviews() {
  const input = /** @type {HTMLInputElement} */ ($("review-file"));
  input.addEventListener("change", async () => {
    if (input.files?.[0]) await read(input.files[0]);
    input.value = "";
  });
}
