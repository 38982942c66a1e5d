// @ts-check
/* One line where the model is unsure of most of a document, and what can be done. */

import { $ } from "./elements.js";
import { ask, attempt, documentPath } from "./server.js";
import { state } from "./store.js";

const SEEN = "weitblick.domain."; // where the browser remembers that somebody has read it

/** @type {string | null} the document that was asked about */
let asked = null;

/** Asks about a document once, when nothing more important is to be translated. */
export function drawDomain() {
  const { document: shown, rowsOf, rows, loading } = state;
  if (shown !== asked) $("domain").hidden = true;
  if (!shown) asked = null;
  if (!shown || asked === shown || rowsOf !== shown || loading || rows.some((row) => row.state === "empty")) return;
  asked = shown;
  if (localStorage.getItem(SEEN + shown) !== null) return;
  attempt("How sure the model is of this document was not asked", async () => {
    const { unsure } = await ask("GET", `${documentPath()}/confidence`);
    if (state.document === shown) $("domain").hidden = !unsure;
  });
}

export function setUpDomain() {
  $("domain-close").addEventListener("click", () => {
    if (state.document) localStorage.setItem(SEEN + state.document, "seen");
    $("domain").hidden = true;
  });
}
