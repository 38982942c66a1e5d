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
