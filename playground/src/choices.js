// Everything that can be chosen: its values, its default and what it means. Panels show it, links are checked by it.

/**
 * @typedef {object} Choice
 * @property {string} label
 * @property {string} help one sentence
 * @property {"one of" | "whole" | "number"} kind
 * @property {string[]} [values] of "one of"
 * @property {Record<string, string>} [names] of the values, where they are to be read
 * @property {number} [least]
 * @property {number} [most]
 * @property {number} [step] of a slider; without one, numbers are typed
 * @property {string | number} standard
 * @property {(chosen: Chosen) => boolean} [applies]
 */

/** @typedef {Record<string, string | number>} Chosen a value for each choice */

export const CLASSES = ["spiral", "donut1d", "donut2d", "squares", "own"];
export const CURVE_NAMES = ["sine", "bump", "step", "own"];
export const ARCHITECTURES = ["net", "resnet", "odenet", "odenet+simplex"];

const isCurve = (/** @type {Chosen} */ chosen) => chosen.task === "regression";
const isNet = (/** @type {Chosen} */ chosen) => chosen.architecture === "net";
const isOwn = (/** @type {Chosen} */ chosen) => chosen[isCurve(chosen) ? "curve" : "data"] === "own";
const uses = (/** @type {string} */ method) => (/** @type {Chosen} */ chosen) => chosen.optimiser === method;

/** @type {Record<string, Choice>} */
export const DATA_CHOICES = {
  task: {
    label: "Task",
    help: "Tell colours apart, or follow a curve y(x).",
    kind: "one of",
    values: ["classification", "regression"],
    names: { classification: "Classify points", regression: "Learn a curve" },
    standard: "classification",
  },
  data: {
    label: "Data set",
    help: "The paper's four, none of which a straight line can divide, or points of your own.",
    kind: "one of",
    values: CLASSES,
    names: { spiral: "Spiral", donut1d: "Donut 1D", donut2d: "Donut 2D", squares: "Squares", own: "Your own" },
    standard: "spiral",
    applies: (chosen) => !isCurve(chosen),
  },
  curve: {
    label: "Curve",
    help: "A formula with noise, or points of your own.",
    kind: "one of",
    values: CURVE_NAMES,
    names: { sine: "Sine", bump: "Bump", step: "Step", own: "Your own" },
    standard: "sine",
    applies: isCurve,
  },
  size: {
    label: "Points",
    help: "How many to learn from; as many others test what was learned.",
    kind: "whole",
    least: 20,
    most: 2000,
    step: 20,
    standard: 500,
    applies: (chosen) => !isOwn(chosen),
  },
  noise: {
    label: "Noise",
    help: "How far points stray from their shape.",
    kind: "number",
    least: 0,
    most: 0.3,
    step: 0.01,
    standard: 0.05,
    applies: (chosen) => !isOwn(chosen),
  },
  dataSeed: {
    label: "Seed of the data",
    help: "Another number draws other points.",
    kind: "whole",
    least: 0,
    most: 9999,
    standard: 0,
    applies: (chosen) => !isOwn(chosen),
  },
};

/** @type {Record<string, Choice>} */
export const NETWORK_CHOICES = {
  architecture: {
    label: "Architecture",
    help: "Net replaces the state in each layer; the others move it by a time step, fixed, learned, or learned with a fixed sum.",
    kind: "one of",
    values: ARCHITECTURES,
    names: { net: "Net", resnet: "ResNet", odenet: "ODENet", "odenet+simplex": "ODENet + Simplex" },
    standard: "resnet",
  },
  layers: {
    label: "Layers",
    help: "How many steps the flow is cut into.",
    kind: "whole",
    least: 1,
    most: 50,
    step: 1,
    standard: 20,
  },
  tableau: {
    label: "Runge-Kutta method",
    help: "How one layer steps through time; its order is derived from its coefficients below.",
    kind: "one of",
    values: [
      ...["euler", "improved_euler", "kutta3", "kutta4", "midpoint", "ralston", "heun3", "ssprk3", "rk38", "kutta5"],
      ...["dormand_prince", "implicit_euler", "implicit_midpoint", "trapezoidal", "sdirk2", "gauss2", "gauss3"],
      ...["radau_iia2", "own"],
    ],
    names: { own: "your own coefficients" },
    standard: "euler",
    applies: (chosen) => !isNet(chosen),
  },
  field: {
    label: "Vector field",
    help: "What moves the points: any layer σ(Ky+b), one that neither grows nor shrinks much, or one that conserves an energy.",
    kind: "one of",
    values: ["dense", "antisymmetric", "hamiltonian"],
    standard: "dense",
    applies: (chosen) => !isNet(chosen),
  },
  activation: {
    label: "Activation σ",
    help: "The bend in every layer.",
    kind: "one of",
    values: ["tanh", "sigmoid", "softplus", "relu", "leaky_relu", "sin", "identity"],
    standard: "tanh",
  },
  augment: {
    label: "Extra dimensions",
    help: "Room beside the plane, so that points can pass each other without tearing it.",
    kind: "whole",
    least: 0,
    most: 6,
    step: 1,
    standard: 0,
  },
  horizon: {
    label: "Horizon T",
    help: "How long the flow lasts: the sum of all time steps at the start, and on the simplex for ever.",
    kind: "number",
    least: 0.5,
    most: 20,
    step: 0.5,
    standard: 10,
    applies: (chosen) => !isNet(chosen),
  },
  seed: {
    label: "Seed of the first controls",
    help: "Another number starts elsewhere.",
    kind: "whole",
    least: 0,
    most: 9999,
    standard: 0,
  },
};

/** @type {Record<string, Choice>} */
export const TRAINING_CHOICES = {
  loss: {
    label: "Loss",
    help: "What a wrong colour costs: the paper's squared distance, or the logarithm of its probability.",
    kind: "one of",
    values: ["squared", "cross_entropy"],
    names: { squared: "squared", cross_entropy: "cross entropy" },
    standard: "cross_entropy",
    applies: (chosen) => !isCurve(chosen),
  },
  curveLoss: {
    label: "Loss",
    help: "What a distance from the curve costs: its square, less for outliers, or its absolute value.",
    kind: "one of",
    values: ["squared_error", "huber", "quantile"],
    names: { squared_error: "squared error", huber: "Huber", quantile: "absolute value" },
    standard: "squared_error",
    applies: isCurve,
  },
  optimiser: {
    label: "Optimiser",
    help: "How the controls go downhill; the paper uses gradient descent with backtracking.",
    kind: "one of",
    values: ["Backtracking", "GradientDescent", "Armijo", "Adam", "LBFGS", "NewtonCG"],
    names: { GradientDescent: "Gradient descent", LBFGS: "L-BFGS", NewtonCG: "Newton-CG" },
    standard: "LBFGS",
  },
  step: {
    label: "Step",
    help: "How far to go along the gradient.",
    kind: "number",
    least: 1e-6,
    most: 100,
    standard: 0.5,
    applies: uses("GradientDescent"),
  },
  L0: {
    label: "First L",
    help: "The first guess of how steep the slope changes: steps have length 1/L.",
    kind: "number",
    least: 1e-6,
    most: 1e6,
    standard: 0.1,
    applies: uses("Backtracking"),
  },
  rho_up: {
    label: "ρ up",
    help: "L grows by this factor after a refused step.",
    kind: "number",
    least: 1.01,
    most: 10,
    standard: 1.5,
    applies: uses("Backtracking"),
  },
  rho_down: {
    label: "ρ down",
    help: "L shrinks by this factor after an accepted step.",
    kind: "number",
    least: 0.1,
    most: 1,
    standard: 0.99,
    applies: uses("Backtracking"),
  },
  c: {
    label: "c",
    help: "Which part of the predicted decrease has to come true.",
    kind: "number",
    least: 0.001,
    most: 0.99,
    standard: 0.4,
    applies: uses("Armijo"),
  },
  shrink: {
    label: "Shrink",
    help: "A refused step is shortened by this factor.",
    kind: "number",
    least: 0.01,
    most: 0.99,
    standard: 0.5,
    applies: uses("Armijo"),
  },
  grow: {
    label: "Grow",
    help: "The next step first tries to be longer by this factor.",
    kind: "number",
    least: 1,
    most: 10,
    standard: 2,
    applies: uses("Armijo"),
  },
  lr: {
    label: "Learning rate",
    help: "About how far each control moves in an iteration.",
    kind: "number",
    least: 1e-5,
    most: 10,
    standard: 0.05,
    applies: uses("Adam"),
  },
  batch_size: {
    label: "Batch",
    help: "Points per iteration, drawn anew each time; 0 takes all of them.",
    kind: "whole",
    least: 0,
    most: 2000,
    standard: 0,
    applies: uses("Adam"),
  },
  memory: {
    label: "Memory",
    help: "Past steps from which the curvature is guessed.",
    kind: "whole",
    least: 1,
    most: 100,
    standard: 20,
    applies: uses("LBFGS"),
  },
  curvature: {
    label: "Curvature",
    help: "The true second derivative, or the part of it that is never negative.",
    kind: "one of",
    values: ["hessian", "gauss_newton"],
    names: { hessian: "Hessian", gauss_newton: "Gauss-Newton" },
    standard: "hessian",
    applies: uses("NewtonCG"),
  },
  radius: {
    label: "First radius",
    help: "How far the quadratic model is believed at the start.",
    kind: "number",
    least: 1e-4,
    most: 100,
    standard: 1,
    applies: uses("NewtonCG"),
  },
};

const weight = { kind: /** @type {"number"} */ ("number"), least: 0, most: 100, standard: 0 };

/** @type {Record<string, Choice>} */
export const PENALTY_CHOICES = {
  tikhonov: {
    ...weight,
    label: "Tikhonov",
    help: "Prefers small controls: this times half their squared length.",
    standard: 0.001,
  },
  l1: { ...weight, label: "L1", help: "Prefers few controls: this times the sum of their sizes." },
  time_smoothness: {
    ...weight,
    label: "Smoothness in time",
    help: "Prefers layers that are like their neighbours, as a flow has them.",
  },
};

export const CHOICES = { ...DATA_CHOICES, ...NETWORK_CHOICES, ...TRAINING_CHOICES, ...PENALTY_CHOICES };

/** @returns {Chosen} */
export function standardChoices() {
  return Object.fromEntries(Object.entries(CHOICES).map(([key, choice]) => [key, choice.standard]));
}

/**
 * @param {string} key
 * @param {string} text
 * @returns {string | number} the value that the text stands for, or an error that says what is accepted
 */
export function parsedChoice(key, text) {
  const { kind, label, values = [], least = 0, most = 0 } = CHOICES[key];
  const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text;
  if (kind === "one of") {
    if (!values.includes(text)) throw new RangeError(`${label} must be one of ${values.join(", ")}, not “${shown}”`);
    return text;
  }
  const isNumber = /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text.trim());
  const value = Number(text);
  const isWhole = kind === "whole";
  if (!isNumber || !(value >= least && value <= most) || (isWhole && !Number.isInteger(value)))
    throw new RangeError(
      `${label} must be a ${isWhole ? "whole " : ""}number from ${least} to ${most}, not “${shown}”`,
    );
  return value;
}

/** Settings of a method in the order of the core; those that nobody chooses have ocdl's defaults. */
const METHOD_SETTINGS = /** @type {Record<string, (string | number)[]>} */ ({
  GradientDescent: ["step"],
  Backtracking: ["L0", "rho_up", "rho_down", 200],
  Armijo: ["c", "shrink", "grow", 0.1, 10, 100],
  Adam: ["lr", 0.9, 0.999, 1e-8, "batch_size", "seed"],
  LBFGS: ["memory", 25],
  NewtonCG: ["curvature", "radius", 0.5, 20, 25],
});

/** @param {Chosen} chosen */
export function methodOf(chosen) {
  const name = String(chosen.optimiser);
  const settings = METHOD_SETTINGS[name].map((entry) => {
    const value = typeof entry === "string" ? chosen[entry] : entry;
    return typeof value === "string" ? (CHOICES.curvature.values ?? []).indexOf(value) : value;
  });
  return { name, settings };
}
