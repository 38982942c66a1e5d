// @ts-check
/* What a person changed between draft and confirmation: shown under the head with the rows that have the same source
   words, and made a term by a key (see `terms.js`). */

import { $, count } from "./elements.js";
import { ask, attempt, documentPath } from "./server.js";
import { change, state } from "./store.js";

/** @typedef {{ source: string, refused: string, target: string, rows: number[] }} Corrected */

/** Looks at what was corrected in a row that has just been confirmed, and forgets it of one that is open again. Where no
 * other row has the words there is nothing to follow it. @param {import("./store.js").Row} row */
export async function lookForCorrections({ position, state: now }) {
  const others = () => state.corrected.filter((one) => one.position !== position);
  if (now !== "confirmed") return void (others().length < state.corrected.length && change((all) => (all.corrected = others())));
  const path = documentPath();
  await attempt("What was corrected is not known", async () => {
    const { corrected } = /** @type {{ corrected: Corrected[] }} */ (await ask("GET", `${path}/corrections?position=${position}`));
    if (!state.document || path !== documentPath()) return;
    const found = corrected.filter(({ rows }) => rows.length).map((one) => ({ ...one, position }));
    change((all) => (all.corrected = [...found, ...others()]));
  });
}

/** The latest correction that nobody has seen to has been: the next one is shown, if there is one. */
export const settleCorrection = () => change((now) => (now.corrected = now.corrected.slice(1)));

export function drawCorrections() {
  const [latest] = state.corrected;
  $("corrected").hidden = !latest;
  const rows = latest ? count(latest.rows.length, "more row", "more rows") : "";
  $("corrected-text").textContent = latest ? `${latest.source}: ${latest.refused} → ${latest.target} · ${rows}` : "";
}
