/* Typing, confirming, moving, undoing. */

const TRAVEL = 800; // ms that scrolling to a row may take
const PAUSE = 400; // ms after the last key before what was typed is sent
let typingTimer = 0;
let atFocus = null; // { position, target, state }: what Esc goes back to

function save(position, newState) {
  clearTimeout(typingTimer);
  const target = views[position].field.value;
  const row = state.rows[position];
  state.rows[position] = { ...row, target, state: newState, before: null, cause: null };
  steadily(() => {
    showRow(position);
    showCounts();
  });
  return unsent.put(rowPath(position), { target, state: newState });
}

function confirmRow(position, goOn) {
  const field = views[position].field;
  if (!field.value.trim()) return say("An empty translation cannot be confirmed.");
  const isOpen = (row) => row.position !== position && row.state !== "confirmed";
  const next = state.rows.find((row) => row.position > position && isOpen(row)) ?? state.rows.find(isOpen);
  if (goOn && next) state.focus = next.position; // told with the confirmation, so that the row is left alone
  save(position, "confirmed");
  atFocus = { position, target: field.value, state: "confirmed" };
  say(`Row ${position + 1} confirmed.`);
  if (!goOn) return;
  if (next) focusRow(next.position);
  else say("All rows are confirmed.");
}

/* What the button of a row does. */
function settleRow(position) {
  if (state.rows[position].state !== "confirmed") return confirmRow(position, false);
  save(position, "edited");
  say(`Row ${position + 1} is open again.`);
}

function focusRow(position) {
  const view = views[position];
  if (!view) return;
  view.field.focus({ preventScroll: true });
  const box = view.element.getBoundingClientRect();
  if (box.top < 120 || box.bottom > innerHeight - coveredHeight() - 40) {
    arrival = performance.now() + TRAVEL;
    scrollBy({ top: box.top - (innerHeight - coveredHeight()) / 3, behavior: calm() ? "auto" : "smooth" });
  }
}

function undo(position) {
  const field = views[position].field;
  const row = state.rows[position];
  if (atFocus?.position === position && (atFocus.target !== field.value || atFocus.state !== row.state)) {
    field.value = atFocus.target;
    save(position, atFocus.state === "empty" ? "draft" : atFocus.state);
    say(`Row ${position + 1} is as it was.`);
  } else field.blur();
}

const positionOf = (event) => Number(event.target.dataset.position);

$("rows").addEventListener("input", (event) => {
  const position = positionOf(event);
  const row = state.rows[position];
  state.rows[position] = { ...row, state: "edited" };
  views[position].element.dataset.state = "edited";
  showRow(position);
  clearTimeout(typingTimer);
  typingTimer = setTimeout(() => save(position, "edited"), PAUSE);
});

$("rows").addEventListener("focusin", (event) => {
  if (event.target.tagName !== "TEXTAREA") return;
  const position = positionOf(event);
  const { target, state: before } = state.rows[position];
  atFocus = { position, target, state: before };
  state.focus = position;
  views[position].element.toggleAttribute("data-current", true);
  tellFocus(position);
  showAlternatives(position);
});

$("rows").addEventListener("focusout", (event) => {
  if (event.target.tagName !== "TEXTAREA") return;
  const position = positionOf(event);
  views[position].element.toggleAttribute("data-current", false);
  if (state.focus === position) state.focus = null;
  if (state.rows[position].state === "edited" && typingTimer) save(position, "edited");
  typingTimer = 0;
  const goesOn = event.relatedTarget?.matches?.("#rows textarea"); // which tells where the cursor is then
  if (state.document && !goesOn) tellFocus(state.focus);
});

/* Where the cursor is, one message after the other: an older one never overtakes a newer. */
let telling = Promise.resolve();
function tellFocus(position) {
  const path = `${documentPath()}/focus`;
  telling = telling.then(() => ask("POST", path, { position })).catch(() => {});
}

$("rows").addEventListener("keydown", (event) => {
  if (event.target.tagName !== "TEXTAREA" || event.isComposing) return;
  const position = positionOf(event);
  const command = event.ctrlKey || event.metaKey;
  const act = (what) => {
    event.preventDefault();
    what();
  };
  if (event.key === "Enter" && command) act(() => confirmRow(position, !event.shiftKey));
  else if (event.key === "ArrowUp" && event.altKey) act(() => focusRow(position - 1));
  else if (event.key === "ArrowDown" && event.altKey) act(() => focusRow(position + 1));
  else if (event.key === "Escape") act(() => undo(position));
  else if (/^Digit[1-3]$/.test(event.code) && (command || event.altKey)) act(() => takeAlternative(position, Number(event.code.at(-1)) - 1));
});

/* ---- other translations of the row under the cursor ---- */

let offered = { position: null, texts: [], found: false };
let asking = null;
let askTimer = 0;

function showAlternatives(position) {
  asking?.abort();
  clearTimeout(askTimer);
  offered = { position, texts: [], found: false };
  $("row-panel").scrollTop = 0;
  $("alternatives").replaceChildren(element("h3", {}, `Row ${position + 1}: other translations`), element("p", { class: "quiet" }, "Looking …"));
  askTimer = setTimeout(async () => {
    asking = new AbortController();
    try {
      const found = await ask("GET", `${rowPath(position)}/alternatives`, undefined, asking.signal);
      if (offered.position !== position) return;
      Object.assign(offered, { texts: found.alternatives, found: true });
      listAlternatives(position, found.matches);
    } catch (error) {
      if (error.name !== "AbortError") $("alternatives").replaceChildren();
    }
  }, 250);
}

function listAlternatives(position, matches) {
  const { code, direction } = state.languages.target;
  const current = views[position].field.value;
  const item = (text, index) =>
    element(
      "li",
      {},
      element("button", { type: "button", class: "alternative", onclick: () => takeAlternative(position, index) },
        element("kbd", {}, `Ctrl ${index + 1}`), element("span", { lang: code, dir: direction }, ...markedDifference(current, text))),
    );
  const match = ({ source, target, similarity }) =>
    element("li", {}, element("button", { type: "button", class: "alternative", onclick: () => takeText(position, target) },
      element("span", { class: "figure" }, `${Math.round(similarity * 100)} %`), element("span", { lang: code, dir: direction, title: source }, target)));
  $("alternatives").replaceChildren(
    element("h3", {}, `Row ${position + 1}: other translations`),
    offered.texts.length ? element("ol", { class: "alternatives" }, ...offered.texts.map(item)) : element("p", { class: "quiet" }, "There is no other."),
    ...(matches.length ? [element("h3", {}, "Approved for a like sentence"), element("ul", { class: "alternatives" }, ...matches.map(match))] : []),
  );
}

const markedDifference = (before, after) =>
  wordSpans(after, changedWords(before, after).added).map((piece) => (piece.className === "w new" ? element("b", {}, piece.textContent) : piece.textContent ?? piece));

function takeAlternative(position, index) {
  const text = offered.position === position ? offered.texts[index] : undefined;
  if (text === undefined) return say(offered.found ? "There is no such alternative." : "Still looking for other translations.");
  takeText(position, text);
}

function takeText(position, text) {
  const field = views[position].field;
  field.focus({ preventScroll: true });
  field.value = text;
  save(position, "edited");
  say("Alternative taken.");
}
