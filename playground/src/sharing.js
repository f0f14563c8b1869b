// What comes in and goes out: links, pictures, models, scripts, tables.

import { NO_TABLE } from "./app.js";
import { certificateTable } from "./certificate_table.js";
import { parsedTable, requireModestSize } from "./csv.js";
import { download } from "./downloads.js";
import { byId } from "./elements.js";
import { readModel, writtenModel } from "./model_file.js";
import { stateOfModel } from "./opened_model.js";
import { classCount } from "./problem.js";
import { pythonScript } from "./python_script.js";
import { pruningSentence } from "./sentences.js";

/** @typedef {import("./app.js").App} App */

/** @param {App} app @param {import("./model_file.js").Facts} facts */
export function listenToSharing(app, facts) {
  const done = (/** @type {string} */ sentence) => (byId("share-done", HTMLElement).textContent = sentence);
  /** What goes wrong in an act becomes a sentence. @param {string} id @param {() => Promise<unknown>} act */
  const click = (id, act) =>
    byId(id, HTMLElement).addEventListener("click", () =>
      act().catch((/** @type {Error} */ error) => app.tell(`That did not work: ${error.message}.`)),
    );
  /** @param {string} id @param {(file: File) => Promise<unknown>} act */
  const opened = (id, act) => {
    const input = byId(id, HTMLInputElement);
    input.addEventListener("change", async () => {
      const file = input.files?.[0];
      input.value = "";
      if (!file) return;
      app.tell("");
      await act(file).catch((/** @type {Error} */ error) => app.tell(`${file.name.slice(0, 60)}: ${error.message}.`));
    });
  };
  click("copy-link", async () => {
    if (app.isPlaying) app.play(false);
    history.replaceState(null, "", app.link());
    await navigator.clipboard.writeText(location.href).then(
      () => done("The link is in the clipboard."),
      () => done("The link is in the address bar."),
    );
  });
  click("save-picture", async () => {
    const blob = await new Promise((/** @type {(blob: Blob | null) => void} */ resolve) =>
      app.plane.toBlob(resolve, "image/png"),
    );
    if (blob) download("ocdl-playground.png", blob, "image/png");
  });
  click("save-model", async () => {
    const bytes = await writtenModel(await modelOf(app), facts);
    download("playground.ocdl", /** @type {BlobPart} */ (bytes), "application/octet-stream");
    done("ocdl predict playground.ocdl points.csv reads it.");
  });
  click("save-script", async () => {
    const { problem, iteration } = await trained(app);
    download("playground.py", pythonScript(problem, app.state.chosen, iteration), "text/x-python");
    done("python playground.py repeats this training.");
  });
  click("certify", async () => {
    byId("certificate", HTMLElement).replaceChildren("Measuring…");
    const checks = await app.engine.ask("certify");
    byId("certificate", HTMLElement).replaceChildren(checks ? certificateTable(checks) : "There is no network yet.");
  });
  click("prune", async () => {
    app.play(false);
    const before = Number(app.state.chosen.layers);
    const pruned = await app.engine.ask("prune");
    const chosen = { ...app.state.chosen, layers: pruned.net.layers };
    await app.restart({ ...app.state, chosen, iterations: 0, start: pruned.u, layer: null });
    app.tell(pruningSentence(pruned, before));
  });
  opened("csv", async (file) => {
    requireModestSize(file.size);
    const table = parsedTable(await file.text(), app.isCurve);
    app.table = table;
    const chosen = { ...app.state.chosen, [app.isCurve ? "curve" : "data"]: "own" };
    await app.restart({ ...app.state, chosen, points: table.points, iterations: 0, start: null, layer: null });
    app.tell(`${file.name.slice(0, 60)}: ${table.note}.`);
  });
  opened("model", async (file) => {
    const model = await readModel(new Uint8Array(await file.arrayBuffer()), facts);
    const { train, test } = app.points;
    const state = stateOfModel(model, app.state, app.isCurve ? 2 : classCount([...train, ...test]));
    if (state.chosen.tableau === "own") await app.engine.ask("tableau", { method: state.method });
    await app.restart({ ...state, layer: null });
  });
}

/** The controls with what they were trained on, or an error that is a sentence. @param {App} app */
async function trained(app) {
  const found = await app.engine.ask("controls");
  if (!found) throw new RangeError("there is no network yet; draw some points, or load a CSV");
  return found;
}

/** @param {App} app @returns {Promise<import("./model_file.js").Model>} */
async function modelOf(app) {
  const { u, problem, iteration } = await trained(app);
  const tableau = await app.engine.ask("tableau", { method: problem.net.tableau });
  const table = app.hasOwnPoints ? app.table : NO_TABLE;
  const { train, test } = app.points;
  const count = classCount([...train, ...test]);
  const classes = table.classes.length === count ? table.classes : Array.from({ length: count }, (_, k) => String(k));
  return {
    ...{ net: problem.net, tableau, u, table, iterations: iteration, loss: problem.objective.loss },
    architecture: String(app.state.chosen.architecture),
    classes: problem.isCurve ? [] : classes,
  };
}
