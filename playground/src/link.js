// The whole state in the address: written short, read strictly. Nothing of a link is ever more than a checked value.

import { fromBase64Url, toBase64Url } from "./bytes.js";
import { CHOICES, parsedChoice, standardChoices } from "./choices.js";
import { MOST_ITERATIONS, partsOf, sizeOf } from "./experiment.js";
import { classCount, networkOf } from "./problem.js";

export const MOST_POINTS = 1000;
export const MOST_CLASSES = 6;
export const MOST_STAGES = 8;
const LONGEST = 200000; // characters
const POINT_BYTES = 5; // two coordinates of 16 bits and a class
const UNITS = 8192; // of a coordinate: they reach to 4
export const FARTHEST = 32767 / UNITS;

/** The nearest coordinate that a link can hold. @param {number} x */
export function rounded(x) {
  return Math.round(Math.max(-FARTHEST, Math.min(FARTHEST, x)) * UNITS) / UNITS;
}

/** A method to start from: the improved Euler method. */
export const FIRST_METHOD = {
  A: [
    [0, 0],
    [1, 0],
  ],
  b: [0.5, 0.5],
};

export const SHOWABLE = ["heat", "line", "points", "test", "paths"];
const SHOWN = ["heat", "line", "points"];

/** @returns {import("./problem.js").State} */
export function standardState() {
  return {
    chosen: standardChoices(),
    points: [],
    method: FIRST_METHOD,
    iterations: 0,
    start: null,
    layer: null,
    shown: SHOWN,
  };
}

/** @param {import("./problem.js").State} state */
export function toLink({ chosen, points, method, iterations, start, layer, shown }) {
  const query = new URLSearchParams();
  for (const [key, { standard, applies }] of Object.entries(CHOICES))
    if (chosen[key] !== standard && (applies?.(chosen) ?? true)) query.set(key, String(chosen[key]));
  const isOwn = chosen[chosen.task === "regression" ? "curve" : "data"] === "own";
  if (isOwn && points.length) query.set("points", toBase64Url(packedPoints(points)));
  if (chosen.tableau === "own") query.set("method", [...method.A.flat(), ...method.b].join("_"));
  if (iterations) query.set("iterations", String(iterations));
  if (start) query.set("start", toBase64Url(new Uint8Array(start.buffer, start.byteOffset, start.byteLength)));
  if (layer !== null) query.set("layer", String(layer));
  if (shown.join() !== SHOWN.join()) query.set("shown", shown.join("."));
  return `#${query}`;
}

/**
 * @param {string} hash of an address
 * @returns {import("./problem.js").State} or an error whose message is a sentence for the reader
 */
export function fromLink(hash) {
  const state = standardState();
  const text = hash.replace(/^#/, "");
  if (text.length > LONGEST) throw new RangeError("it is too long");
  /** @type {Record<string, (value: string) => void>} */
  const more = {
    points: (value) => (state.points = unpackedPoints(fromBase64Url(value))),
    method: (value) => (state.method = parsedMethod(value)),
    iterations: (value) => (state.iterations = wholeNumber(value, "iterations", MOST_ITERATIONS)),
    layer: (value) => (state.layer = parsedLayer(value)),
    shown: (value) => (state.shown = parsedShown(value)),
    start: (value) => (state.start = parsedNumbers(fromBase64Url(value))),
  };
  const seen = new Set();
  for (const [key, value] of new URLSearchParams(text)) {
    if (seen.has(key)) throw new RangeError(`${shortened(key)} occurs twice`);
    seen.add(key);
    if (Object.hasOwn(CHOICES, key)) state.chosen[key] = parsedChoice(key, value);
    else if (Object.hasOwn(more, key)) more[key](value);
    else throw new RangeError(`“${shortened(key)}” is nothing that can be chosen`);
  }
  requireFittingStart(state);
  return state;
}

/** @param {import("./problem.js").State} state */
function requireFittingStart(state) {
  if (!state.start) return;
  const { points, chosen } = state;
  const parts = partsOf(networkOf(state, chosen.data === "own" ? classCount(points) : 2));
  const size = parts.reduce((sum, part) => sum + sizeOf(part), 0);
  if (state.start.length !== size)
    throw new RangeError(`its network has ${size} controls, but ${state.start.length} are given`);
}

/** @param {string} text */
const shortened = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** @param {import("./datasets.js").Point[]} points */
function packedPoints(points) {
  const bytes = new Uint8Array(points.length * POINT_BYTES);
  const view = new DataView(bytes.buffer);
  points.forEach(({ x, y, target }, i) => {
    view.setInt16(i * POINT_BYTES, Math.round(x * UNITS), true);
    view.setInt16(i * POINT_BYTES + 2, Math.round(y * UNITS), true);
    view.setUint8(i * POINT_BYTES + 4, target);
  });
  return bytes;
}

/** @param {Uint8Array} bytes */
function unpackedPoints(bytes) {
  const count = bytes.length / POINT_BYTES;
  if (!Number.isInteger(count) || count > MOST_POINTS)
    throw new RangeError(`it does not hold up to ${MOST_POINTS} whole points`);
  const view = new DataView(bytes.buffer);
  return Array.from({ length: count }, (_, i) => {
    const x = view.getInt16(i * POINT_BYTES, true) / UNITS;
    const y = view.getInt16(i * POINT_BYTES + 2, true) / UNITS;
    const label = view.getUint8(i * POINT_BYTES + 4);
    if (label >= MOST_CLASSES) throw new RangeError(`point ${i + 1} has a class that does not exist`);
    return { x, y, target: label };
  });
}

/** @param {string} text */
function parsedMethod(text) {
  const numbers = text.split("_").map((one) => {
    if (!/^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(one) || !Number.isFinite(Number(one)))
      throw new RangeError(`“${shortened(one)}” is no coefficient of a method`);
    return Number(one);
  });
  const stages = Math.round((Math.sqrt(4 * numbers.length + 1) - 1) / 2);
  if (stages * (stages + 1) !== numbers.length || stages > MOST_STAGES)
    throw new RangeError(`${numbers.length} coefficients are no method of up to ${MOST_STAGES} stages`);
  return {
    A: Array.from({ length: stages }, (_, i) => numbers.slice(i * stages, (i + 1) * stages)),
    b: numbers.slice(stages * stages),
  };
}

/** @param {string} text */
function parsedLayer(text) {
  const most = CHOICES.layers.most ?? 0;
  if (!/^\d{1,2}(\.\d{1,2})?$/.test(text) || Number(text) > most)
    throw new RangeError(`layer must be a number up to ${most}`);
  return Number(text);
}

/** @param {string} text */
function parsedShown(text) {
  const shown = text === "" ? [] : text.split(".");
  if (shown.some((one, i) => !SHOWABLE.includes(one) || shown.indexOf(one) !== i))
    throw new RangeError(`shown must be some of ${SHOWABLE.join(", ")}`);
  return SHOWABLE.filter((one) => shown.includes(one));
}

/** @param {string} text @param {string} name @param {number} most */
function wholeNumber(text, name, most) {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > most) throw new RangeError(`${name} must be a whole number up to ${most}`);
  return value;
}

/** @param {Uint8Array} bytes */
function parsedNumbers(bytes) {
  if (bytes.length % 8) throw new RangeError("its controls are incomplete");
  const numbers = new Float64Array(bytes.buffer, 0, bytes.length / 8);
  if (!numbers.every(Number.isFinite)) throw new RangeError("its controls are not finite");
  return numbers;
}
