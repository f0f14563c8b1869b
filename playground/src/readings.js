// What the page says about the training in words and numbers.

import { byId } from "./elements.js";
import { percent, shortNumber, STATUS_SENTENCES, stepsSentence } from "./sentences.js";

/** @typedef {import("./app.js").App} App */

/** @param {string} id @param {string} text */
function set(id, text) {
  const place = byId(id, HTMLElement);
  if (place.textContent !== text) place.textContent = text;
}

/** What depends on the task and the architecture. @param {App} app */
export function showTask({ isCurve, state }) {
  byId("steps-card", HTMLElement).hidden = state.chosen.architecture === "net";
  byId("certificate", HTMLElement).replaceChildren();
  set("score-name", isCurve ? "R²" : "Accuracy");
  set("score-word", isCurve ? "R²" : "accuracy");
  const help = isCurve
    ? "Move it to see how the layers bend a straight line into the curve."
    : "Move it to see the points travel; the colours show what the remaining layers make of each place.";
  set("layer-help", help);
  for (const id of ["show-line", "show-paths"]) byId(id, HTMLInputElement).disabled = isCurve;
}

/** What changes with every frame. @param {App} app */
export function showNumbers(app) {
  const { frame, isCurve } = app;
  const score = (/** @type {number} */ value) => (isCurve ? value.toFixed(3) : percent(value));
  set("iteration", String(frame?.iteration ?? 0));
  set("loss", frame ? shortNumber(frame.now.loss) : "–");
  set("score", frame ? score(frame.now.score) : "–");
  set("test-score", frame?.now.testScore != null ? score(frame.now.testScore) : "–");
  set("steps-help", stepsSentence(frame?.steps ?? [], String(app.state.chosen.architecture)));
  byId("prune", HTMLElement).hidden = !frame?.steps.some((h) => h === 0);
  set("plane-note", noteOf(app));
}

/** @param {App} app */
function noteOf({ points, frame, layer, isCurve }) {
  if (!points.train.length) return "Draw points here, or load a CSV";
  if (!frame) return "";
  if (frame.dim > 2 && layer > 0 && !isCurve) return `two of ${frame.dim} dimensions`;
  return STATUS_SENTENCES[frame.status] ?? "";
}

/** Whether it plays; and where it stopped, for those who do not see the picture. @param {App} app */
export function showTransport({ isPlaying, frame, isCurve }) {
  const [mark, word] = byId("play", HTMLButtonElement).children;
  mark.textContent = isPlaying ? "❚❚" : "▶";
  word.textContent = isPlaying ? "Pause" : "Train";
  if (isPlaying || !frame) return;
  const { loss, score } = frame.now;
  const name = isCurve ? `R² ${score.toFixed(3)}` : `accuracy ${percent(score)}`;
  set("plane-says", `Iteration ${frame.iteration}, loss ${shortNumber(loss)}, ${name}.`);
}
