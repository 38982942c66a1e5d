// @ts-check
/* Comments on rows: shown under the translation, written in a dialog. */

import { openDialog } from "./dialogs.js";
import { focusRow } from "./editing.js";
import { $, element } from "./elements.js";
import { byWhom, person } from "./person.js";
import { tab, takeRows } from "./saving.js";
import { ask, attempt, here } from "./server.js";
import { say, state } from "./store.js";

/** @typedef {import("./store.js").Comment} Comment */

/** What the dialog is about: a row of the document that was shown, and one of its comments or a new one.
 * @type {{ position: number, comment: Comment | null, place: ReturnType<typeof here> }} */
let about = { position: 0, comment: null, place: here() };

/** What each place shows. @type {WeakMap<HTMLElement, Comment[]>} */
const drawn = new WeakMap();

const field = () => /** @type {HTMLTextAreaElement} */ ($("comment-text"));

/** Under the field of a row: what was said about it. @param {HTMLElement} place @param {import("./store.js").Row} row */
export function drawComments(place, { position, comments }) {
  if (drawn.get(place) === comments || (!drawn.has(place) && !comments.length)) return;
  drawn.set(place, comments);
  place.hidden = !comments.length;
  place.replaceChildren(...comments.map((comment) => line(comment, position)));
}

/** @param {Comment} comment @param {number} position */
function line(comment, position) {
  const change = () => openComment(position, comment);
  return element(
    "p",
    { class: "comment" },
    element("span", { class: "comment-text", dir: "auto" }, comment.text),
    element("span", { class: "quiet" }, ` ${byWhom(comment.person, comment.time)} `),
    element("button", { type: "button", class: "small", onclick: change }, "Change", element("span", { class: "visually-hidden" }, ` this comment on row ${position + 1}`)),
  );
}

/** Opens the dialog for a new comment on a row, or for one that is there. @param {number | null} position @param {Comment | null} [comment] */
export function openComment(position, comment = null) {
  if (position === null || !state.rows[position]) return say("Go to a row first: a comment is about one.");
  about = { position, comment, place: here() };
  $("comment-title").textContent = comment ? `Comment on row ${position + 1}` : `A new comment on row ${position + 1}`;
  $("comment-delete").hidden = !comment;
  field().value = comment?.text ?? "";
  openDialog("comment-dialog");
  field().focus();
}

/** Sends what the dialog says. @param {string} failure @param {string} done @param {(path: string) => Promise<import("./store.js").Row>} send */
function settle(failure, done, send) {
  const { position, place } = about;
  return attempt(failure, async () => {
    takeRows([await send(`${place.row(position)}/comments`)], place.path);
    /** @type {HTMLDialogElement} */ ($("comment-dialog")).close();
    if (place.isShown()) focusRow(position);
    say(done);
  });
}

function save() {
  const { comment } = about;
  const body = { text: field().value, writer: tab, person: person() };
  if (!body.text.trim()) return say("There is no text yet.");
  if (!comment) return settle("The comment is not added", "Comment added.", (path) => ask("POST", path, body));
  return settle("The comment is not changed", "Comment changed.", (path) => ask("PUT", `${path}/${comment.id}`, { ...body, version: comment.version }));
}

function remove() {
  const { comment } = about;
  if (!comment) return;
  const query = new URLSearchParams({ version: String(comment.version), writer: tab, ...(person() ? { person: /** @type {string} */ (person()) } : {}) });
  return settle("The comment is not deleted", "Comment deleted. Undo brings it back.", (path) => ask("DELETE", `${path}/${comment.id}?${query}`));
}

export function setUpComments() {
  $("comment-form").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  field().addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    save();
  });
  $("comment-delete").addEventListener("click", remove);
}
