// A Python script that does what the page did: the same data, the same first controls, the same training.

import { CHOICES } from "./choices.js";
import { partOf, partsOf, sizeOf } from "./experiment.js";

const WIDTH = 100;

/** @param {ArrayLike<number>} numbers a list, broken into lines */
function listed(numbers) {
  const lines = [""];
  for (const number of Array.from(numbers)) {
    const text = `${number}, `;
    if (lines[lines.length - 1].length + text.length > WIDTH) lines.push("");
    lines[lines.length - 1] += text;
  }
  return `[\n${lines.map((line) => `    ${line.trimEnd()}`).join("\n")}\n]`;
}

const PENALTIES = /** @type {Record<string, string>} */ ({
  tikhonov: "Tikhonov",
  l1: "L1",
  time_smoothness: "TimeSmoothness",
});
const SETTINGS = /** @type {Record<string, string[]>} */ ({
  GradientDescent: ["step"],
  Backtracking: ["L0", "rho_up", "rho_down"],
  Armijo: ["c", "shrink", "grow"],
  Adam: ["lr", "batch_size"],
  LBFGS: ["memory"],
  NewtonCG: ["curvature", "radius"],
});

/** @param {import("./choices.js").Chosen} chosen */
function optimiserCall(chosen) {
  const method = String(chosen.optimiser);
  const given = SETTINGS[method].map((name) => {
    const value = chosen[name];
    if (name === "batch_size") return `batch_size=${value || "None"}`;
    return `${name}=${CHOICES[name].kind === "one of" ? JSON.stringify(value) : value}`;
  });
  return `ocdl.${method}(${given.join(", ")})`;
}

/** @param {import("./experiment.js").NetworkSpec} net */
function networkCall(net) {
  const tableau =
    typeof net.tableau === "string"
      ? JSON.stringify(net.tableau)
      : `ocdl.Tableau(${JSON.stringify(net.tableau.A)}, ${JSON.stringify(net.tableau.b)})`;
  const given = [
    ...[`${net.features}`, `${net.layers}`, `n_outputs=${net.outputs}`, `tableau=${tableau}`],
    ...[`residual=${net.residual ? "True" : "False"}`, `field="${net.field}"`, `activation="${net.activation}"`],
    ...[`time_steps="${net.timeSteps}"`, `horizon=${net.horizon}`, `augment=${net.augment}`],
  ];
  return `ocdl.Network(\n${given.map((one) => `    ${one},\n`).join("")})`;
}

/** The page hands its seed to the core as it is, where ocdl.train draws one from NumPy's generator. @param {number} seed */
const batchSeed = (seed) => `
class PageSeed(np.random.RandomState):
    """The seed of the page's batches, so that they are the same."""

    def bytes(self, length):
        return (${seed}).to_bytes(length, "little")


`;

/**
 * @param {import("./problem.js").Problem} problem
 * @param {import("./choices.js").Chosen} chosen
 * @param {number} iterations
 */
export function pythonScript(problem, chosen, iterations) {
  const { net, objective, train, test, start } = problem;
  const penalties = Object.entries(objective.penalties).filter(([, weight]) => weight > 0);
  const penaltyList = penalties.map(([name, weight]) => `ocdl.${PENALTIES[name]}(${weight})`).join(", ");
  const rows = (/** @type {Float64Array} */ X) => `np.array(${listed(X)}).reshape(-1, ${net.features})`;
  const type = problem.isCurve ? "float" : "int";
  const parts = partsOf(net).filter((part) => sizeOf(part) > 0);
  const controls = parts.map(({ name, shape }) => {
    const values = listed(partOf(net, start, name));
    return `    ${name}=np.array(${values.replaceAll("\n", "\n    ")}).reshape(${shape.join(", ")}),\n`;
  });
  const hasTest = test.X.length > 0;
  const drawsBatches = chosen.optimiser === "Adam" && Number(chosen.batch_size) > 0;
  const score = problem.isCurve ? "R^2" : "accuracy";
  return `"""What the playground of ocdl learned, in Python: the same data, first controls and training."""

import numpy as np

import ocdl

X = ${rows(train.X)}
y = np.array(${listed(train.targets)}, dtype=${type})
${hasTest ? `X_test = ${rows(test.X)}\ny_test = np.array(${listed(test.targets)}, dtype=${type})\n` : ""}
net = ${networkCall(net)}
u = net.controls(
${controls.join("")})

${drawsBatches ? batchSeed(Number(chosen.seed)) : ""}result = ocdl.train(
    net,
    u,
    X,
    y,
    objective=ocdl.Objective(loss="${objective.loss}", penalties=[${penaltyList}]),
    optimiser=${optimiserCall(chosen)},
    max_iter=${Math.max(1, iterations)},
    validation=${hasTest ? "(X_test, y_test)" : "None"},
    random_state=${drawsBatches ? "PageSeed()" : chosen.seed},
)
print(f"loss {result.history.loss[-1]:.6g} after {result.n_iter} iterations")
print(f"${score} {result.history.score[-1]:.4f}${hasTest ? `, of test data {result.history.val_score[-1]:.4f}` : ""}")
ocdl.save("playground.ocdl", net, result.controls)
`;
}
