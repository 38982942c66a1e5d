// @ts-check
/* How people are addressed in the translations of a project. */

import { element } from "./elements.js";
import { ask, attempt } from "./server.js";
import { say } from "./store.js";

/** @typedef {"auto" | "formal" | "informal"} Formality */

/** The cause of a draft's change for which the form of address is the reason, as the server calls it. */
export const FORMALITY = -(2 ** 52);

const NAMES = { auto: "as the model does it, one way in a document", formal: "formal (Sie)", informal: "informal (du)" };
const DONE = {
  auto: "Nobody asks for a form of address any more. Drafts that were changed for it are as before.",
  formal: "Formal: drafts that address people in another way are translated again.",
  informal: "Informal: drafts that address people in another way are translated again.",
};

/** The field in the dialog of a project. @param {{ id: string, formality: Formality, formalities: Formality[] }} project */
export function formalityForm({ id, formality, formalities }) {
  const field = /** @type {HTMLSelectElement} */ (
    element("select", { id: "formality", disabled: formalities.length < 2 }, ...formalities.map((one) => element("option", { value: one, selected: one === formality }, NAMES[one])))
  );
  const path = `/v1/projects/${id}`;
  let known = formality;
  field.addEventListener("change", async () => {
    const wanted = /** @type {Formality} */ (field.value);
    const done = await attempt("The form of address is not set", () => ask("PUT", path, { formality: wanted }));
    if (done) {
      known = wanted;
      say(DONE[wanted]);
    } else field.value = known;
  });
  const hint = formalities.length < 2 ? [element("span", { class: "quiet" }, "This model knows no forms of address.")] : [];
  return element("p", { class: "name-form" }, element("label", { for: "formality" }, "Form of address"), field, ...hint);
}
