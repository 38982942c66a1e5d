// @ts-check
/* The checks of a project, in its dialog: its own rules, and what it ignores. */

import { element } from "./elements.js";
import { ask, attempt } from "./server.js";
import { change, say } from "./store.js";

/** @typedef {import("./store.js").OwnRule} OwnRule */

/** @param {import("./store.js").ProjectDetails} project @param {() => Promise<void>} show draws the dialog anew */
export function checkParts({ id, ignored, rules }, show) {
  const path = `/v1/projects/${id}`;
  const again = async (/** @type {string} */ done) => {
    change((now) => now.findings.clear()); // what is known of rows was found by other rules
    await show();
    say(done);
  };
  const set = (/** @type {OwnRule[]} */ wanted, /** @type {string} */ done) =>
    attempt("The rule is not taken", async () => {
      await ask("PUT", `${path}/rules`, { rules: wanted });
      await again(done);
    });
  const notice = (/** @type {import("./store.js").IgnoredFindings} */ one) =>
    attempt("It is still ignored", async () => {
      await ask("DELETE", `${path}/ignored/${one.id}`);
      await again(`${one.rule} is looked for again.`);
    });
  const line = (/** @type {string} */ name, /** @type {string} */ what, /** @type {string} */ verb, /** @type {() => void} */ act) =>
    element("li", {}, element("span", {}, name), element("span", {}, what), element("button", { type: "button", class: "small", onclick: act }, verb, element("span", { class: "visually-hidden" }, ` ${name}`)));
  const own = rules.map((rule) =>
    line(rule.name, [rule.source, rule.target, rule.missing && `not ${rule.missing}`].filter(Boolean).join(" · "), "Remove", () => set(rules.filter((one) => one !== rule), `${rule.name} is no longer a rule.`)),
  );
  const unseen = ignored.map((one) => line(one.rule, [one.position === null ? "everywhere" : `row ${one.position + 1}`, one.words ?? ""].filter(Boolean).join(": "), "Show again", () => notice(one)));
  return [
    element("p", { class: "rule-title" }, "Checks", element("span", { class: "quiet" }, " rules of your own: regular expressions")),
    addingForm((rule) => set([...rules, rule], `${rule.name} is a rule now.`)),
    ...(own.length ? [element("ul", { class: "glossary", "aria-label": "Own rules", tabindex: 0 }, ...own)] : []),
    ...(unseen.length ? [element("ul", { class: "glossary", "aria-label": "Ignored findings", tabindex: 0 }, ...unseen)] : []),
  ];
}

/** A rule is a name and a regular expression that no translation should match. @param {(rule: OwnRule) => void} add */
function addingForm(add) {
  const input = (/** @type {string} */ id, /** @type {string} */ placeholder) =>
    /** @type {HTMLInputElement} */ (element("input", { id, placeholder, "aria-label": placeholder, maxlength: id === "rule-name" ? 60 : 1000 }));
  const name = input("rule-name", "Name of a rule");
  const target = input("rule-target", "No translation matches …");
  const form = element("form", { class: "name-form rule-form" }, name, target, element("button", { class: "tool" }, "Add"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (name.value.trim() && target.value) add({ name: name.value.trim(), target: target.value });
    else say("A rule needs a name and a regular expression.");
  });
  return form;
}
