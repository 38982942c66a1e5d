/* Keys, tabs, theme, and the start. */

const KEYS = [
  [["Ctrl", "Enter"], "confirm, and go to the next open row"],
  [["Ctrl", "Shift", "Enter"], "confirm, and stay"],
  [["Alt", "↑"], "row above"],
  [["Alt", "↓"], "row below"],
  [["Ctrl", "1 – 3"], "take an alternative (Alt as well)"],
  [["Esc"], "undo what was typed in this row; then leave it"],
  [["n"], "next changed sentence, outside text fields"],
  [["p"], "previous changed sentence, outside text fields"],
  [["?"], "this list, outside text fields"],
];

$("keys").append(
  ...KEYS.map(([keys, what]) =>
    element("div", {}, element("dt", {}, ...keys.flatMap((key, index) => (index ? [" ", element("kbd", {}, key)] : [element("kbd", {}, key)]))), element("dd", {}, what)),
  ),
);
$("help-button").addEventListener("click", () => $("help").showModal());

document.addEventListener("keydown", (event) => {
  const writing = /^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName);
  if (writing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "n") visitChange(1);
  else if (event.key === "p") visitChange(-1);
  else if (event.key === "?") $("help").showModal();
});

const TABS = ["row", "consistency"];
function showTab(name) {
  for (const tab of TABS) {
    $(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
    $(`tab-${tab}`).setAttribute("tabindex", tab === name ? "0" : "-1");
    $(`${tab}-panel`).hidden = tab !== name;
  }
  if (name === "consistency") showConsistency();
}
for (const tab of TABS) {
  $(`tab-${tab}`).addEventListener("click", () => (showTab(tab), openPanel(true)));
  $(`tab-${tab}`).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = TABS[1 - TABS.indexOf(tab)];
    showTab(other);
    $(`tab-${other}`).focus();
  });
}

/* On a narrow window the panel lies at the foot and can be folded up. */
function openPanel(open) {
  $("panel").toggleAttribute("data-folded", !open);
  $("panel-toggle").setAttribute("aria-expanded", String(open));
  $("panel-toggle").textContent = open ? "Hide" : "Show";
}
$("panel-toggle").addEventListener("click", () => openPanel($("panel").hasAttribute("data-folded")));
openPanel(!matchMedia("(max-width: 60rem)").matches);

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme-button").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme-button").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
}
const dark = matchMedia("(prefers-color-scheme: dark)");
setTheme(localStorage.getItem("weitblick.theme") ?? (dark.matches ? "dark" : "light"));
dark.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
$("theme-button").addEventListener("click", () => {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  localStorage.setItem("weitblick.theme", document.documentElement.dataset.theme);
});

async function start() {
  try {
    state.languages = await ask("GET", "/v1/languages");
    $("welcome-lead").append(` This server translates ${state.languages.source.name} into ${state.languages.target.name}.`);
    const { supportedFilesFormat } = await ask("GET", "/frontend/settings");
    $("file-kinds").textContent = supportedFilesFormat.join("  ");
    $("file-input").setAttribute("accept", supportedFilesFormat.join(","));
    $("paste-text").setAttribute("lang", state.languages.source.code);
    await loadProjects();
    await openProject(state.project);
  } catch (error) {
    say(`The server cannot be reached: ${error.message}`);
  }
}
start();
