// A model that was opened, as a state of the page: only what could have been chosen here is taken.

import { CHOICES, parsedChoice } from "./choices.js";
import { networkOf } from "./problem.js";

/**
 * @param {Awaited<ReturnType<typeof import("./model_file.js").readModel>>} model
 * @param {import("./problem.js").State} state what else stays as it is
 * @param {number} classes of the points that are shown
 * @returns {import("./problem.js").State}
 */
export function stateOfModel({ net, tableauName, u, isCurve }, state, classes) {
  const architectures = { fixed: "resnet", free: "odenet", simplex: "odenet+simplex" };
  const given = {
    architecture: net.residual ? architectures[net.timeSteps] : "net",
    ...{ layers: net.layers, augment: net.augment, activation: net.activation, field: net.field },
    ...(net.residual ? { horizon: net.horizon } : {}),
    tableau: CHOICES.tableau.values?.includes(tableauName) ? tableauName : "own",
  };
  /** @type {import("./choices.js").Chosen} */
  const chosen = { ...state.chosen, task: isCurve ? "regression" : "classification" };
  for (const [key, value] of Object.entries(given)) chosen[key] = parsedChoice(key, String(value));
  const method = chosen.tableau === "own" && typeof net.tableau !== "string" ? net.tableau : state.method;
  const opened = { ...state, chosen, method, iterations: 0, start: u };
  const { outputs, features } = networkOf(opened, classes);
  if (outputs !== net.outputs || features !== net.features)
    throw new RangeError(
      `The model takes ${net.features} numbers and has ${net.outputs} outputs, which does not fit the data; choose data with as many classes first`,
    );
  return opened;
}
