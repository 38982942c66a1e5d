// @ts-check
/* Building the page. Text of the document only ever becomes text nodes. */

/** The element of this name, which the page has. @param {string} id */
export const $ = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** element("button", { class: "tool", onclick: act }, "Text", otherElement)
 * @param {string} tag @param {Record<string, any>} [attributes] @param {(Node | string | null | undefined)[]} children
 * @returns {HTMLElement} */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** @param {string} tag @param {Record<string, any>} [attributes] @param {(Node | string)[]} children */
export function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @param {number} share */
export const percent = (share) => (share >= 0.0995 ? `${Math.round(share * 100)}` : (share * 100).toFixed(1)) + " %";
/** @param {number} number */
export const signed = (number, digits = 2) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(digits);
/** @param {number} number @param {string} one @param {string} many */
export const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
/** @param {number} other @param {number} current */
export const relative = (other, current) =>
  other === current ? "j" : `j${other < current ? "−" : "+"}${Math.abs(other - current)}`;

/* Six steps of a word's whole attention: what a sentence gets times what the word gets in it. The heavier ones are
   underlined and numbered too, so that colour is not all that carries them. */
export const HEAT_STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.35];
/** @param {number} weight */
export const heat = (weight) => HEAT_STEPS.filter((least) => weight >= least).length;

/** A bar whose length is a share of its track. @param {number} share @param {string} [label] */
export function meter(share, label) {
  const fill = element("span", { class: "meter-fill" });
  fill.style.inlineSize = `${Math.min(1, Math.max(0, share)) * 100}%`;
  return element("span", { class: "meter", role: "img", "aria-label": label ?? percent(share) }, fill);
}
