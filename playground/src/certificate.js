// What the theory says must hold, measured on this very network, as ocdl's Network.certify does.

import { Experiment, partOf, partsOf, sizeOf, someLayers } from "./experiment.js";
import { Random } from "./random.js";
import { describeTableau, symplecticityDefect } from "./tableau.js";

/** @typedef {{name: string, value: number | null, expected: string, passed: boolean | null}} Check */

const dot = (/** @type {ArrayLike<number>} */ a, /** @type {ArrayLike<number>} */ b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};
const norm = (/** @type {ArrayLike<number>} */ a) => Math.sqrt(dot(a, a));

/**
 * @param {import("./core.js").Core} core
 * @param {import("./problem.js").Problem} problem
 * @param {Float64Array} u
 * @returns {Check[]}
 */
export function certify(core, problem, u) {
  const experiment = new Experiment(core, problem.net, problem.objective);
  try {
    experiment.setSamples(problem.train);
    const random = new Random(0, 3);
    const limit = 100 * problem.net.layers * stagesOf(core, problem.net) * Number.EPSILON;
    return [
      gradientCheck(experiment, problem, u, random),
      atMost("⟨p, v⟩ is the same at all layers: its drift", productDrift(experiment, u, random), limit),
      atMost("⟨p, v⟩ at the end − at the start = Σ⟨∂J/∂u, w⟩", defectByParts(experiment, u, random), limit),
      symplecticPair(core, problem.net),
      observedOrder(core, problem, u),
    ];
  } finally {
    experiment.free();
  }
}

/** @param {import("./core.js").Core} core @param {import("./experiment.js").NetworkSpec} net */
function stagesOf(core, net) {
  return describeTableau(core, net.tableau).b.length;
}

/** @param {string} name @param {number} value @param {number} limit @returns {Check} */
function atMost(name, value, limit) {
  return { name, value, expected: `at most ${limit.toExponential(1)}`, passed: value <= limit };
}

/** Which controls are variables: fixed steps are none. @param {import("./experiment.js").NetworkSpec} net */
function variableMask(net) {
  const parts = partsOf(net);
  return Float64Array.from(
    parts.flatMap((part) => new Array(sizeOf(part)).fill(part.name === "h" && net.timeSteps === "fixed" ? 0 : 1)),
  );
}

const RATIO = 4;
const STEPS = Array.from({ length: 19 }, (_, i) => RATIO ** -(i + 1));
const FITTED = 5;

/**
 * The slope of |J(u + e w) - J(u) - e <g, w>|: 2 if g is the gradient of J.
 * @param {Experiment} experiment
 * @param {import("./problem.js").Problem} problem
 * @param {Float64Array} u
 * @param {Random} random
 * @returns {Check}
 */
function gradientCheck(experiment, problem, u, random) {
  const name = "gradient: slope of |J(u+εw) − J(u) − ε⟨g, w⟩|";
  const hasKinks = problem.objective.penalties.l1 > 0;
  const mask = variableMask(problem.net).map((one, n) => (hasKinks && u[n] === 0 ? 0 : one));
  const { value, gradient } = experiment.derivatives(u, true);
  const slopes = gradient.map((g, n) => g * mask[n]);
  const noise = mask.map((one) => one * random.normal());
  const sign = dot(noise, slopes) >= 0 ? 1 : -1;
  let w = noise.map((x, n) => (sign * x) / norm(noise) + (norm(slopes) > 0 ? slopes[n] / norm(slopes) : 0));
  w = w.map((x) => x / norm(w));
  const slope = dot(gradient, w);
  const remainder = (/** @type {number} */ e) =>
    Math.abs(experiment.value(u.map((x, n) => x + e * w[n])) - value - e * slope);
  const remainders = STEPS.map(remainder);
  const tail = [20, 21, 22, 23].map((n) => remainder(RATIO ** -n));
  const roundoff = Math.max(Number.EPSILON * Math.abs(value), ...tail);
  const end = remainders.findIndex((r) => !(r > 100 * roundoff));
  const last = end < 0 ? STEPS.length : end;
  const first = Math.max(0, last - FITTED);
  const errors = STEPS.map((e, i) => remainders[i] / e / Math.abs(slope));
  const isRight = errors.some((_, i) => i + 2 < errors.length && Math.max(...errors.slice(i, i + 3)) <= 1e-6);
  if (last - first < 3)
    return { name, value: null, expected: "2, but all is below roundoff", passed: isRight ? true : null };
  const found = fittedSlope(STEPS.slice(first, last).map(Math.log), remainders.slice(first, last).map(Math.log));
  return { name, value: found, expected: "2 (at least 1.5)", passed: found >= 1.5 || isRight };
}

/** @param {number[]} x @param {number[]} y */
function fittedSlope(x, y) {
  const mean = (/** @type {number[]} */ a) => a.reduce((sum, one) => sum + one, 0) / a.length;
  const [mx, my] = [mean(x), mean(y)];
  return (
    dot(
      x.map((a) => a - mx),
      y.map((b) => b - my),
    ) /
    dot(
      x.map((a) => a - mx),
      x.map((a) => a - mx),
    )
  );
}

/** f(offset) of every sample's state at a layer. @param {Experiment} e @param {number} j @param {number} i */
const place = (e, j, i) => (j * e.samples + i) * e.dim;

/**
 * For each sample the largest |p| |v| over the layers, and <p[j], v[j]>.
 * @param {Experiment} e
 * @param {Float64Array} p
 * @param {Float64Array} v
 */
function products(e, p, v) {
  return Array.from({ length: e.samples }, (_, i) => {
    const at = (/** @type {Float64Array} */ a, /** @type {number} */ j) =>
      a.subarray(place(e, j, i), place(e, j, i) + e.dim);
    const layers = Array.from({ length: e.net.layers + 1 }, (_, j) => j);
    const size = Math.max(...layers.map((j) => norm(at(p, j)))) * Math.max(...layers.map((j) => norm(at(v, j))));
    return { size, along: layers.map((j) => dot(at(p, j), at(v, j))) };
  });
}

/** @param {Experiment} e @param {Random} random */
const randomInputs = (e, random) => Float64Array.from({ length: e.samples * e.net.features }, () => random.normal());

/** @param {Experiment} e @param {Float64Array} u @param {Random} random */
function productDrift(e, u, random) {
  const { costates } = e.derivatives(u, false);
  const all = products(e, costates, e.tangent(u, null, randomInputs(e, random)));
  return Math.max(
    ...all.map(({ size, along }) => (size > 0 ? Math.max(...along.map((x) => Math.abs(x - along[0]))) / size : 0)),
  );
}

/** @param {Experiment} e @param {Float64Array} u @param {Random} random */
function defectByParts(e, u, random) {
  const w = variableMask(e.net).map((one) => one * random.normal());
  for (const name of ["W", "mu"]) partOf(e.net, w, name).fill(0); // the states do not depend on them
  const { costates, gradient } = e.derivatives(u, false);
  const all = products(e, costates, e.tangent(u, w, randomInputs(e, random)));
  const terms = gradient.map((g, n) => g * w[n]);
  const sum = (/** @type {ArrayLike<number>} */ a) => dot(a, new Array(a.length).fill(1));
  const boundary = sum(all.map(({ along }) => along[along.length - 1])) - sum(all.map(({ along }) => along[0]));
  const size = sum(all.map((one) => one.size)) + sum(terms.map(Math.abs));
  return size > 0 ? Math.abs(boundary - sum(terms)) / size : 0;
}

/** @param {import("./core.js").Core} core @param {import("./experiment.js").NetworkSpec} net @returns {Check} */
function symplecticPair(core, net) {
  const name = "the method and its adjoint partner are symplectic";
  if (!net.residual) return { name, value: null, expected: "a Net has no method", passed: null };
  const found = symplecticityDefect(core, describeTableau(core, net.tableau));
  if (!found) return { name, value: null, expected: "a weight is 0: the general adjoint is used", passed: null };
  return atMost(name, found.defect, found.limit);
}

const REFINED_SAMPLES = 50;
const FINEST = 128;

/**
 * With 2, 4, 8, ... times as many layers of the same flow: the order with which it converges.
 * @param {import("./core.js").Core} core
 * @param {import("./problem.js").Problem} problem
 * @param {Float64Array} u
 * @returns {Check}
 */
function observedOrder(core, { net, objective, train }, u) {
  const name = "order with which the flow converges";
  if (!net.residual) return { name, value: null, expected: "a Net has no time", passed: null };
  const { order } = describeTableau(core, net.tableau);
  const X = train.X.subarray(0, REFINED_SAMPLES * net.features);
  const free = { ...net, timeSteps: /** @type {const} */ ("free") };
  const finalState = (/** @type {number} */ factor) => {
    const layers = Array.from({ length: net.layers * factor }, (_, j) => Math.floor(j / factor));
    const fine = someLayers(free, u, layers);
    const steps = partOf(fine.net, fine.u, "h");
    steps.forEach((h, j) => (steps[j] = h / factor));
    const experiment = new Experiment(core, fine.net, objective);
    const { states } = experiment.predict(fine.u, X, true);
    experiment.free();
    return states.slice(states.length - (X.length / net.features) * (net.features + net.augment));
  };
  let before = finalState(1);
  const size = Math.max(...before.map(Math.abs));
  const noise = 1000 * Number.EPSILON * Math.max(1, size);
  /** @type {number[]} */
  const differences = [];
  for (let factor = 2; factor <= FINEST && factor * net.layers <= 2560; factor *= 2) {
    const after = finalState(factor);
    const difference = Math.max(...after.map((x, n) => Math.abs(x - before[n])));
    if (!(difference > noise)) break;
    differences.push(difference);
    before = after;
  }
  const orders = differences.slice(1).map((one, n) => Math.log2(differences[n] / one));
  const last = orders[orders.length - 1];
  if (orders.length === 0) return { name, value: null, expected: "exact to roundoff", passed: null };
  const isFar = differences[differences.length - 1] > 0.1 * size; // flows that differ by more have no order yet
  if (isFar || last < -0.25 || (orders.length > 1 && Math.abs(last - orders[orders.length - 2]) > 0.5))
    return { name, value: null, expected: "not settled: the steps are too long", passed: null };
  if (["relu", "leaky_relu"].includes(net.activation))
    return { name, value: last, expected: "none: the field has kinks", passed: null };
  const least = Math.min(order - 0.5, 0.85 * order);
  return { name, value: last, expected: `${order} (at least ${least.toFixed(1)})`, passed: last >= least };
}
