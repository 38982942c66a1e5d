// @ts-check
/* Who works here: a name that this browser keeps, and sends with whatever is written. */

import { element } from "./elements.js";
import { say } from "./store.js";

const NAME = "weitblick.person";
const MOST = 100; // characters that the server takes

/** The name in the settings, or null. */
export const person = () => localStorage.getItem(NAME) || null;

/** The form in which the name is set. */
export function personForm() {
  const field = /** @type {HTMLInputElement} */ (
    element("input", { id: "person-name", value: person() ?? "", maxlength: MOST, autocomplete: "name", placeholder: "shown with what you confirm, review and comment" })
  );
  const form = element("form", { class: "name-form" }, element("label", { for: "person-name" }, "Your name"), field, element("button", { class: "tool" }, "Set"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    localStorage.setItem(NAME, field.value.trim());
    say(person() ? `You are ${person()} here, in this browser.` : "Nobody's name is kept with your work.");
  });
  return form;
}

/** When something was decided, and by whom, as a person reads it. @param {string | null} name @param {number | null} time seconds */
export function byWhom(name, time) {
  const when = time === null ? "" : new Date(time * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  return [name ? `by ${name}` : "", when].filter(Boolean).join(", ");
}
