// What is to be learned by which network: everything that the core is told, made from what was chosen.

import { CHOICES, methodOf } from "./choices.js";
import { divided, makePoints } from "./datasets.js";
import { partsOf, sizeOf } from "./experiment.js";
import { Random } from "./random.js";

/**
 * @typedef {object} State everything that a link holds
 * @property {import("./choices.js").Chosen} chosen
 * @property {import("./datasets.js").Point[]} points of one's own
 * @property {{A: number[][], b: number[]}} method coefficients of one's own
 * @property {number} iterations how far it was trained
 * @property {Float64Array | null} start the first controls, unless they follow from the seed
 * @property {number | null} layer that is shown; none: the first one, for a curve the last
 * @property {string[]} shown in the plane
 */

/**
 * @typedef {object} Problem
 * @property {import("./experiment.js").NetworkSpec} net
 * @property {import("./experiment.js").ObjectiveSpec} objective
 * @property {{name: string, settings: number[]}} method
 * @property {import("./experiment.js").Samples} train
 * @property {import("./experiment.js").Samples} test
 * @property {Float64Array} start
 * @property {boolean} isCurve
 */

/** @param {State} state */
export function pointsOf({ chosen, points }) {
  const isCurve = chosen.task === "regression";
  const name = String(isCurve ? chosen.curve : chosen.data);
  if (name === "own") return divided(isCurve ? points.map(({ x, y }) => ({ x, y, target: y })) : points);
  const how = { size: Number(chosen.size), noise: Number(chosen.noise), seed: Number(chosen.dataSeed) };
  return { train: makePoints(name, { ...how, stream: 0 }), test: makePoints(name, { ...how, stream: 1 }) };
}

/** @param {import("./datasets.js").Point[]} points @param {boolean} isCurve */
export function samplesOf(points, isCurve) {
  return {
    X: Float64Array.from(points.flatMap(({ x, y }) => (isCurve ? [x] : [x, y]))),
    targets: Float64Array.from(points, ({ target }) => target),
  };
}

/** @param {import("./datasets.js").Point[]} points */
export function classCount(points) {
  return Math.max(2, ...points.map(({ target }) => target + 1));
}

const TIME_STEPS = /** @type {const} */ ({
  net: "fixed",
  resnet: "fixed",
  odenet: "free",
  "odenet+simplex": "simplex",
});

/**
 * @param {State} state
 * @param {number} classes
 * @returns {import("./experiment.js").NetworkSpec}
 */
export function networkOf({ chosen, method }, classes) {
  const isCurve = chosen.task === "regression";
  const architecture = /** @type {keyof typeof TIME_STEPS} */ (chosen.architecture);
  const residual = architecture !== "net";
  const features = isCurve ? 1 : 2;
  let augment = Number(chosen.augment);
  const field = residual ? String(chosen.field) : "dense";
  const most = CHOICES.augment.most ?? 0;
  if (field === "hamiltonian" && (features + augment) % 2 === 1) augment += augment < most ? 1 : -1; // positions and momenta
  return {
    features,
    augment,
    layers: Number(chosen.layers),
    outputs: isCurve || classes === 2 ? 1 : classes,
    tableau: !residual ? "euler" : chosen.tableau === "own" ? method : String(chosen.tableau),
    activation: String(chosen.activation),
    field,
    residual,
    timeSteps: TIME_STEPS[architecture],
    horizon: residual ? Number(chosen.horizon) : 1,
  };
}

/**
 * The paper's first controls, as Network.init makes them: K and W standard normal, b and mu 0, equal time steps.
 * @param {import("./experiment.js").NetworkSpec} net
 * @param {number} seed
 */
export function firstControls(net, seed) {
  const random = new Random(seed, 2);
  const parts = partsOf(net);
  const last = parts[parts.length - 1];
  const u = new Float64Array(last.begin + sizeOf(last));
  for (const part of parts)
    for (let n = part.begin; n < part.begin + sizeOf(part); n++) {
      if (part.name === "K" || part.name === "W") u[n] = random.normal();
      if (part.name === "h") u[n] = net.horizon / net.layers;
    }
  return u;
}

/**
 * @param {State} state
 * @returns {Problem}
 */
export function problemOf(state) {
  const { chosen } = state;
  const { train, test } = pointsOf(state);
  const isCurve = chosen.task === "regression";
  const net = networkOf(state, isCurve ? 2 : classCount([...train, ...test]));
  const penalties = Object.fromEntries(
    ["tikhonov", "l1", "time_smoothness"].map((name) => [name, Number(chosen[name])]),
  );
  return {
    net,
    objective: { loss: String(isCurve ? chosen.curveLoss : chosen.loss), penalties },
    method: methodOf(chosen),
    train: samplesOf(train, isCurve),
    test: samplesOf(test, isCurve),
    start: state.start ?? firstControls(net, Number(chosen.seed)),
    isCurve,
  };
}
