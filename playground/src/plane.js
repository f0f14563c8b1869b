// The plane: prediction, decision line, points on their way through the layers, and a place to draw.

import { cleared } from "./canvas.js";
import { zeroLines } from "./contour.js";
import { COLOURS, fillsOf, styled, theme } from "./palette.js";

/** @typedef {import("./session.js").Frame} Frame */
/** @typedef {[number, number, number, number]} View left, right, bottom, top */
/**
 * @typedef {object} Scene
 * @property {Frame | null} frame none while there is nothing to learn
 * @property {View} view
 * @property {number} layer with a fraction: between two layers
 * @property {import("./datasets.js").Point[]} train
 * @property {import("./datasets.js").Point[]} test
 * @property {boolean} isCurve
 * @property {Set<string>} shown some of heat, line, points, test, paths
 * @property {{x: number, y: number} | null} cross of the keyboard
 */

export const INPUT_VIEW = /** @type {View} */ ([-1.2, 1.2, -1.2, 1.2]);

/** The view with the shape of a canvas. @param {View} view @param {number} width @param {number} height @returns {View} */
export function widened([left, right, bottom, top], width, height) {
  const scale = Math.max((right - left) / width, (top - bottom) / height);
  const [x, y] = [(left + right) / 2, (bottom + top) / 2];
  return [x - (scale * width) / 2, x + (scale * width) / 2, y - (scale * height) / 2, y + (scale * height) / 2];
}

/**
 * What shows all points at a layer, and never less than the inputs' plane at the first one.
 * @param {Frame} frame
 * @param {number} layer
 * @param {boolean} isCurve
 * @returns {View}
 */
export function viewOf(frame, layer, isCurve) {
  if (layer === 0 || isCurve) return INPUT_VIEW;
  const count = countOf(frame);
  let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < count; i++) {
    const [x, y] = stateAt(frame, layer, count, i);
    left = Math.min(left, x);
    right = Math.max(right, x);
    bottom = Math.min(bottom, y);
    top = Math.max(top, y);
  }
  if (!(right - left < 1e6 && top - bottom < 1e6)) return INPUT_VIEW;
  const margin = 0.08 * Math.max(right - left, top - bottom, 0.5);
  const share = Math.min(1, layer); // the view leaves the inputs' plane as the points do
  const fitted = [left - margin, right + margin, bottom - margin, top + margin];
  return /** @type {View} */ (fitted.map((one, k) => INPUT_VIEW[k] + share * (one - INPUT_VIEW[k])));
}

/** @param {Frame} frame @param {number} layer @param {number} count @param {number} i @returns {[number, number]} */
function stateAt({ states, layers }, layer, count, i) {
  const from = Math.min(layers, Math.floor(layer));
  const to = Math.min(layers, from + 1);
  const share = layer - from;
  const [a, b] = [2 * (from * count + i), 2 * (to * count + i)];
  return [states[a] + share * (states[b] - states[a]), states[a + 1] + share * (states[b + 1] - states[a + 1])];
}

const image = document.createElement("canvas");

/** @param {HTMLCanvasElement} canvas @param {Scene} scene */
export function drawPlane(canvas, scene) {
  const { context, width, height } = cleared(canvas);
  const { frame, isCurve, shown } = scene;
  const [left, right, bottom, top] = scene.view;
  const toX = (/** @type {number} */ x) => ((x - left) / (right - left)) * width;
  const toY = (/** @type {number} */ y) => ((top - y) / (top - bottom)) * height;
  context.fillStyle = styled("--field");
  context.fillRect(0, 0, width, height);
  if (frame?.means && !isCurve) {
    const [l, r, b, t] = frame.look.frame;
    const place = { x: toX(l), y: toY(t), width: toX(r) - toX(l), height: toY(b) - toY(t) };
    if (shown.has("heat")) drawHeat(context, frame, place);
    if (shown.has("line")) drawDecision(context, frame, place);
  }
  drawAxes(context, toX(0), toY(0), width, height);
  if (frame && shown.has("paths") && !isCurve) drawPaths(context, frame, scene, toX, toY);
  if (shown.has("points")) drawTrainingPoints(context, scene, toX, toY);
  if (shown.has("test") && (scene.layer === 0 || isCurve))
    for (const { x, y, target } of scene.test)
      drawPoint(context, toX(x), toY(y), isCurve ? 1 : target, false, scene.test.length);
  if (frame?.means && isCurve && shown.has("heat")) drawCurve(context, frame, toX, toY);
  if (scene.cross) drawCross(context, toX(scene.cross.x), toY(scene.cross.y));
}

/** @param {CanvasRenderingContext2D} context @param {Scene} scene @param {(x: number) => number} toX @param {(y: number) => number} toY */
function drawTrainingPoints(context, { frame, layer, train, isCurve }, toX, toY) {
  const count = frame ? countOf(frame) : 0;
  const hasMoved = frame && layer > 0 && !isCurve;
  train.forEach(({ x, y, target }, i) => {
    if (hasMoved && i >= count) return; // drawn since the frame was made
    const [px, py] = hasMoved ? stateAt(frame, layer, count, i) : [x, y];
    drawPoint(context, toX(px), toY(py), isCurve ? 1 : target, true, train.length);
  });
}

/** How many points a frame has. @param {Frame} frame */
function countOf({ states, layers }) {
  return states.length / (2 * (layers + 1));
}

/** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {{x: number, y: number, width: number, height: number}} place */
function drawHeat(context, frame, place) {
  const side = frame.look.grid + 1;
  const fills = fillsOf(theme());
  const ground = theme() === "dark" ? [22, 30, 40] : [250, 250, 250];
  image.width = image.height = side;
  const pixels = new ImageData(side, side);
  const { means, meanSize } = frame;
  if (!means) return;
  for (let i = 0; i < side; i++)
    for (let j = 0; j < side; j++) {
      const from = (i * side + j) * meanSize;
      let best = 0;
      let second = 0;
      let winner = 0;
      for (let k = 0; k < meanSize; k++) {
        const p = means[from + k];
        if (p > best) [second, best, winner] = [best, p, k];
        else if (p > second) second = p;
      }
      const certainty = Math.min(1, Math.max(0, best - second)) ** 0.7; // 0 on a decision line
      const to = ((side - 1 - i) * side + j) * 4;
      for (let k = 0; k < 3; k++) pixels.data[to + k] = ground[k] + certainty * (fills[winner][k] - ground[k]);
      pixels.data[to + 3] = 255;
    }
  /** @type {CanvasRenderingContext2D} */ (image.getContext("2d")).putImageData(pixels, 0, 0);
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  // The numbers stand at the corners of cells, the middles of pixels.
  const [w, h] = [place.width / (side - 1), place.height / (side - 1)];
  context.drawImage(image, place.x - w / 2, place.y - h / 2, place.width + w, place.height + h);
}

/** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {{x: number, y: number, width: number, height: number}} place */
function drawDecision(context, frame, place) {
  const { means, meanSize, look } = frame;
  if (!means) return;
  const side = look.grid + 1;
  context.strokeStyle = styled("--ink");
  context.lineWidth = 2;
  context.lineCap = "round";
  context.beginPath();
  for (let k = meanSize === 2 ? 1 : 0; k < meanSize; k++)
    zeroLines(
      (i, j) => {
        const from = (i * side + j) * meanSize;
        let other = 0;
        for (let l = 0; l < meanSize; l++) if (l !== k) other = Math.max(other, means[from + l]);
        return logarithm(means[from + k]) - logarithm(other);
      },
      look.grid,
      (x0, y0, x1, y1) => {
        context.moveTo(place.x + (x0 / look.grid) * place.width, place.y + (1 - y0 / look.grid) * place.height);
        context.lineTo(place.x + (x1 / look.grid) * place.width, place.y + (1 - y1 / look.grid) * place.height);
      },
    );
  context.stroke();
}

/** Logarithms change more evenly than probabilities, which makes a smoother line. @param {number} p */
const logarithm = (p) => Math.log(Math.max(p, 1e-7));

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} width @param {number} height */
function drawAxes(context, x, y, width, height) {
  context.strokeStyle = styled("--edge");
  context.globalAlpha = 0.35;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.moveTo(0, y);
  context.lineTo(width, y);
  context.stroke();
  context.globalAlpha = 1;
}

/**
 * Classes differ in colour and shape; test points are hollow.
 * @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} target @param {boolean} isFull @param {number} count
 */
function drawPoint(context, x, y, target, isFull, count) {
  const r = count > 800 ? 2.6 : count > 300 ? 3.3 : 4.5;
  context.beginPath();
  if (target % 2 === 1) context.arc(x, y, r, 0, 2 * Math.PI);
  else context.rect(x - 0.88 * r, y - 0.88 * r, 1.76 * r, 1.76 * r);
  context.fillStyle = isFull ? COLOURS[target] : "rgb(255 255 255 / 80%)";
  context.fill();
  context.strokeStyle = isFull ? "rgb(255 255 255 / 85%)" : COLOURS[target];
  context.lineWidth = isFull ? 0.8 : 1.6;
  context.stroke();
}

const MOST_PATHS = 60;

/** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {Scene} scene @param {(x: number) => number} toX @param {(y: number) => number} toY */
function drawPaths(context, frame, { train, layer }, toX, toY) {
  const count = countOf(frame);
  const stride = Math.max(1, Math.ceil(count / MOST_PATHS));
  const end = layer === 0 ? frame.layers : layer;
  context.lineWidth = 1.2;
  context.globalAlpha = 0.6;
  for (let i = 0; i < Math.min(count, train.length); i += stride) {
    context.strokeStyle = COLOURS[train[i].target] ?? COLOURS[1];
    context.beginPath();
    for (let j = 0; j < end + 1; j++) {
      const [x, y] = stateAt(frame, Math.min(j, end), count, i);
      if (j === 0) context.moveTo(toX(x), toY(y));
      else context.lineTo(toX(x), toY(y));
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {(x: number) => number} toX @param {(y: number) => number} toY */
function drawCurve(context, { means, look }, toX, toY) {
  if (!means) return;
  const [left, right] = look.frame;
  context.strokeStyle = styled("--warm");
  context.lineWidth = 3.5;
  context.lineJoin = "round";
  context.beginPath();
  means.forEach((y, i) => {
    const x = left + ((right - left) * i) / (means.length - 1);
    if (i === 0) context.moveTo(toX(x), toY(y));
    else context.lineTo(toX(x), toY(y));
  });
  context.stroke();
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y */
function drawCross(context, x, y) {
  context.strokeStyle = styled("--ink");
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - 9, y);
  context.lineTo(x + 9, y);
  context.moveTo(x, y - 9);
  context.lineTo(x, y + 9);
  context.stroke();
}
