/* Drafts that changed because something was confirmed: counted, visited, kept or undone. */

const changedRows = () => state.rows.filter(isChanged).map((row) => row.position);

function showChanges() {
  const changed = changedRows().length;
  $("changes").hidden = !changed;
  $("changes-text").textContent = `${count(changed, "sentence", "sentences")} changed`;
}

/* The next changed row after the one that was visited last, or the one before it. */
let visited = null;

function visitChange(step = 1) {
  const changed = changedRows();
  if (!changed.length) return say("No sentence has changed.");
  const from = state.focus ?? visited ?? (step > 0 ? -1 : state.rows.length);
  const later = step > 0 ? changed.find((position) => position > from) : changed.findLast((position) => position < from);
  visited = later ?? (step > 0 ? changed[0] : changed.at(-1));
  const { element: row, before } = views[visited];
  arrival = performance.now() + TRAVEL;
  row.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
  before.querySelector("button")?.focus({ preventScroll: true });
  say(`Row ${visited + 1} has changed.`);
}

async function keepRow(position) {
  const wasHere = holdsFocus(position);
  receiveRows([await ask("POST", `${rowPath(position)}/keep`)]);
  say(`Row ${position + 1} is as it was.`);
  if (wasHere) goOn(position);
}

async function acceptRow(position) {
  const wasHere = holdsFocus(position);
  receiveRows([await ask("POST", `${rowPath(position)}/accept`)]);
  say(`Row ${position + 1}: change accepted.`);
  if (wasHere) goOn(position);
}

/* The buttons of a row go with its change: whoever was there is at the next one then, or in the row's field. */
const holdsFocus = (position) => views[position].before.contains(document.activeElement);
function goOn(position) {
  if (changedRows().length) visitChange(1);
  else focusRow(position);
}

/* For the changed row that was visited last, if it is still open. */
function settleVisited(settle) {
  if (visited === null || !state.rows[visited] || !isChanged(state.rows[visited])) return say("Go to a changed sentence first, with n.");
  views[visited].before.querySelector("button")?.focus({ preventScroll: true });
  settle(visited);
}

async function undoChanges() {
  const rows = await ask("POST", `${documentPath()}/undo`);
  receiveRows(rows);
  say(`${count(rows.length, "sentence is", "sentences are")} as before.`);
}

async function acceptChanges() {
  for (const position of changedRows()) await acceptRow(position);
  say("All changes accepted.");
}

$("changes-next").addEventListener("click", () => visitChange(1));
$("changes-undo").addEventListener("click", undoChanges);
$("changes-accept").addEventListener("click", acceptChanges);
