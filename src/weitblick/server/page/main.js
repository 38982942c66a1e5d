/* Keys, tabs, theme, and the start. */

const KEYS = [
  [["Ctrl", "Enter"], "confirm, and go to the next open row"],
  [["Ctrl", "Shift", "Enter"], "confirm, and stay"],
  [["Alt", "↑"], "row above"],
  [["Alt", "↓"], "row below"],
  [["Ctrl", "1 – 3"], "take an alternative (Alt as well)"],
  [["Esc"], "undo what was typed in this row; then leave it"],
];
const LETTERS = [
  [["n"], "next changed sentence"],
  [["p"], "previous changed sentence"],
  [["k"], "keep the sentence as it was"],
  [["a"], "accept its change"],
  [["?"], "this list"],
];

const keyList = (keys) =>
  element("dl", {}, ...keys.map(([names, what]) => element("div", {}, element("dt", {}, ...names.flatMap((name) => [element("kbd", {}, name), " "])), element("dd", {}, what))));
$("keys").append(keyList(KEYS), element("p", { class: "quiet" }, "Outside text fields, which Esc leaves:"), keyList(LETTERS));
$("help-button").addEventListener("click", () => $("help").showModal());

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) return goBack();
  const writing = /^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName);
  if (writing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "n") visitChange(1);
  else if (event.key === "p") visitChange(-1);
  else if (event.key === "k") settleVisited(keepRow);
  else if (event.key === "a") settleVisited(acceptRow);
  else if (event.key === "?") $("help").showModal();
});

/* The panel begins where the bar ends, on however many lines that is. */
new ResizeObserver(([bar]) => document.documentElement.style.setProperty("--bar", `${bar.target.offsetHeight}px`)).observe(document.querySelector(".bar"));

setUpTabs(["row", "consistency"], (name) => name === "consistency" && showConsistency());
setUpTheme({
  get theme() {
    return localStorage.getItem("weitblick.theme") ?? undefined;
  },
  set theme(value) {
    localStorage.setItem("weitblick.theme", value);
  },
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
