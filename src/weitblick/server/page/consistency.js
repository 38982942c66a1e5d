/* Source terms that are translated in several ways. A click makes one of them the approved one. */

/* After drafts were translated again; what is not looked at is looked for when it is. */
function refreshConsistency() {
  if (!$("consistency-panel").hidden && state.document) showConsistency({ quietly: true });
}

async function showConsistency({ quietly = false } = {}) {
  const body = $("consistency-panel");
  if (!quietly) body.replaceChildren(element("p", { class: "quiet" }, "Looking through the document …"));
  let terms;
  try {
    terms = await ask("GET", `${documentPath()}/consistency`);
  } catch (error) {
    return body.replaceChildren(element("p", { class: "quiet" }, error.message));
  }
  $("consistency-count").hidden = false;
  $("consistency-count").textContent = String(terms.length);
  if (!terms.length) return body.replaceChildren(element("p", { class: "invitation" }, "Every term that comes more than once is translated in one way."));
  body.replaceChildren(
    element("p", { class: "quiet" }, "Terms that are translated in several ways. Approve one, and drafts that have the term are translated again with it."),
    element("ul", { class: "terms" }, ...terms.map(termItem)),
    element("button", { type: "button", class: "tool wide", onclick: () => showConsistency() }, "Look again"),
  );
}

function termItem({ source, variants }) {
  const { code, direction } = state.languages.target;
  const variant = ({ target, count: times, positions, approved }) =>
    element(
      "li",
      { class: "variant" },
      element("span", { class: "variant-text", lang: code, dir: direction }, target, element("span", { class: "count" }, `${times}×`)),
      approved
        ? element("span", { class: "approved" }, "✓ approved")
        : element("button", { type: "button", class: "small", onclick: () => approveTerm(source, target) }, "Approve", element("span", { class: "visually-hidden" }, ` ${target} for ${source}`)),
      element(
        "span",
        { class: "places" },
        positions.length > 1 ? "rows " : "row ",
        ...positions.slice(0, 8).map((position) =>
          element("button", { type: "button", class: "place-link", "aria-label": `Row ${position + 1}`, onclick: () => focusRow(position) }, String(position + 1)),
        ),
        positions.length > 8 ? `and ${positions.length - 8} more` : null,
      ),
    );
  return element("li", { class: "term" }, element("h3", { lang: state.languages.source.code }, source), element("ul", {}, ...variants.map(variant)));
}

async function approveTerm(source, target) {
  await ask("POST", `${documentPath()}/terms`, { source, target });
  say(`${target} is now the approved translation of ${source}.`);
  await showConsistency({ quietly: true });
  $("consistency-panel").focus({ preventScroll: true });
}
