// @ts-check
/* Tells the server which rows are on the screen, as long as some wait for their translation: these come first. */

import { rowsOnScreen } from "./rows.js";
import { ask, attempt, documentPath } from "./server.js";
import { state } from "./store.js";

const PAUSE = 120; // ms after the last movement until it is told

let timer = 0;
let told = "";

/** The page shows other rows, or another document. */
export function tellSeenSoon() {
  clearTimeout(timer);
  timer = setTimeout(tellSeen, PAUSE);
}

function tellSeen() {
  const seen = state.document && state.rowsOf === state.document && !state.loading ? rowsOnScreen() : null;
  const what = `${state.document} ${seen?.first} ${seen?.last}`;
  if (!seen || what === told || !state.rows.some((row) => row.state === "empty")) return;
  told = what;
  const path = `${documentPath()}/view`;
  return attempt("Which rows are seen was not told", () => ask("POST", path, seen));
}

/** @type {string | null} */
let drawn = null;

/** Another document is told of when it is there. */
export function drawSeen() {
  if (drawn === state.rowsOf || state.loading) return;
  drawn = state.rowsOf;
  tellSeenSoon();
}

export function setUpSeen() {
  addEventListener("scroll", tellSeenSoon, { passive: true });
  addEventListener("resize", tellSeenSoon);
}
