// @ts-check
/* The panel beside the text: its tabs, how it is folded up on a narrow window, and the colours of the page. */

import { $ } from "./elements.js";

const NARROW = "(max-width: 60rem)";

/** Tabs with these names; `shown` is told which one is open.
 * @param {string[]} names @param {(name: string) => unknown} shown */
export function setUpTabs(names, shown = () => {}) {
  const show = (/** @type {string} */ name) => {
    for (const tab of names) {
      $(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
      $(`tab-${tab}`).setAttribute("tabindex", tab === name ? "0" : "-1");
      $(`${tab}-panel`).hidden = tab !== name;
    }
    shown(name);
  };
  names.forEach((tab, place) => {
    $(`tab-${tab}`).addEventListener("click", () => {
      show(tab);
      openPanel(true);
    });
    $(`tab-${tab}`).addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      const other = names[(place + step + names.length) % names.length];
      show(other);
      $(`tab-${other}`).focus();
    });
  });
  return show;
}

/** On a narrow window the panel lies at the foot, over the text: folded up until it is wanted. @param {boolean} open */
export function openPanel(open) {
  $("panel").toggleAttribute("data-folded", !open);
  $("panel-toggle").setAttribute("aria-expanded", String(open));
  $("panel-toggle").textContent = open ? "Hide" : "Show";
}

export function setUpPanel() {
  $("panel-toggle").addEventListener("click", () => openPanel($("panel").hasAttribute("data-folded")));
  openPanel(!matchMedia(NARROW).matches);
}

/* What the panel covers of the window. */
export const coveredHeight = () => (matchMedia(NARROW).matches && !$("panel").hidden ? $("panel").getBoundingClientRect().height : 0);

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** @param {string} theme */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme-button").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme-button").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
}

/** Colours as the system has them, until somebody wants others. `kept` is where that wish is remembered.
 * @param {{ theme?: string }} kept */
export function setUpTheme(kept = {}) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(kept.theme ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
  $("theme-button").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    kept.theme = document.documentElement.dataset.theme;
  });
}
