// Model files as ocdl writes and reads them: a safetensors file with a description, a SHA-256 and the controls.

import { partOf, partsOf, sizeOf } from "./experiment.js";
import { MOST_STAGES } from "./link.js";

/**
 * @typedef {object} Facts what the page knows of the ocdl that built it
 * @property {string} version
 * @property {number} formatVersion of files
 * @property {Record<string, Record<string, unknown>>} parameters defaults of the two estimators
 */

/**
 * @typedef {object} Model what a file is made of
 * @property {import("./experiment.js").NetworkSpec} net
 * @property {import("./tableau.js").Tableau} tableau
 * @property {Float64Array} u
 * @property {string} architecture
 * @property {string} loss
 * @property {number} iterations
 * @property {string[]} classes none: numbers are predicted
 * @property {{names: string[] | null, mean: number[], scale: number[]}} table how columns became coordinates
 */

const NO_DIGEST = "0".repeat(64);
const LARGEST_FILE = 1e7;
const LARGEST_HEADER = 2 ** 20;
const LARGEST_SIZE = 50;

/** @param {string} text JSON with letters of ASCII only */
const ascii = (text) =>
  text.replace(/[^\x20-\x7e]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * @param {Model} model
 * @param {Facts} facts
 */
function descriptionOf(model, facts) {
  const { net, tableau, classes, table } = model;
  const kind = classes.length ? "ODEClassifier" : "ODERegressor";
  const targets = classes.length
    ? { classes: { dtype: `<U${Math.max(1, ...classes.map((name) => [...name].length))}`, values: classes } }
    : { mean: [table.mean[1]], scale: [table.scale[1]], single: true };
  const features = net.features;
  const names = table.names?.slice(0, features) ?? null;
  const { A, b, c, name } = tableau;
  const parameters = {
    n_layers: net.layers,
    activation: net.activation,
    horizon: net.horizon,
    architecture: model.architecture,
    loss: model.loss,
  };
  return {
    network: {
      ...{ n_features: features, n_layers: net.layers, n_outputs: net.outputs, tableau: { name, A, b, c } },
      ...{ residual: net.residual, field: net.field, activation: net.activation, time_steps: net.timeSteps },
      ...{ horizon: net.horizon, augment: net.augment, stage_controls: false, dtype: "float64" },
    },
    metadata: {
      estimator: {
        ...{ kind, parameters: { ...facts.parameters[kind], ...parameters }, targets },
        ...{ feature_names: null, n_iter: model.iterations, status: null },
      },
      table: {
        ...{ width: features + 1, names, positions: names ? names.map((_, j) => j) : [0, 1].slice(0, features) },
        ...{ mean: table.mean.slice(0, features), scale: table.scale.slice(0, features) },
        ...{ kinds: {}, categories: {}, n_means: {}, formats: {}, cycles: {}, missing: {}, indicators: [], fill: null },
        target: { name: table.names?.[features] ?? null, position: features },
      },
    },
    ocdl: facts.version,
  };
}

/** @param {Uint8Array} bytes */
async function sha256(bytes) {
  const digest = await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (bytes));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {Model} model
 * @param {Facts} facts
 * @returns {Promise<Uint8Array>}
 */
export async function writtenModel(model, facts) {
  const metadata = {
    ...{ description: ascii(JSON.stringify(descriptionOf(model, facts))), format: "ocdl" },
    ...{ format_version: String(facts.formatVersion), kind: "model", sha256: NO_DIGEST },
  };
  let offset = 0;
  /** @type {Record<string, unknown>} */
  const tensors = {};
  for (const part of partsOf(model.net)) {
    const end = offset + 8 * sizeOf(part);
    tensors[part.name] = { dtype: "F64", shape: part.shape, data_offsets: [offset, end] };
    offset = end;
  }
  let header = JSON.stringify({ ...tensors, __metadata__: metadata });
  header += " ".repeat((8 - (header.length % 8)) % 8);
  const data = new Uint8Array(8 + header.length + offset);
  new DataView(data.buffer).setBigUint64(0, BigInt(header.length), true);
  data.set(new TextEncoder().encode(header), 8);
  data.set(new Uint8Array(model.u.buffer, model.u.byteOffset, offset), 8 + header.length);
  const digest = await sha256(data);
  data.set(new TextEncoder().encode(digest), 8 + header.indexOf(NO_DIGEST));
  return data;
}

/**
 * The network of a file that this page can show, or an error that is a sentence for the reader.
 * @param {Uint8Array} data
 * @param {Facts} facts
 */
export async function readModel(data, facts) {
  if (data.length > LARGEST_FILE)
    throw new RangeError(
      `The file has ${(data.length / 1e6).toFixed(0)} MB; this page reads models of up to ${LARGEST_FILE / 1e6}`,
    );
  const { metadata, tensors, start } = headerOf(data);
  if (metadata.format !== "ocdl" || metadata.kind !== "model") throw new RangeError("The file is no model of ocdl");
  if (Number(metadata.format_version) > facts.formatVersion)
    throw new RangeError("The file was written by a newer ocdl than this page");
  await requireDigest(data, String(metadata.sha256), start);
  try {
    return networkIn(JSON.parse(metadata.description), tensors, data.subarray(start));
  } catch (error) {
    throw error instanceof Unfit
      ? error
      : new RangeError("The file is malformed: it holds no network and controls of it");
  }
}

/** What a file says that this page cannot show. */
class Unfit extends RangeError {}

/**
 * @param {any} description
 * @param {any} tensors
 * @param {Uint8Array} data
 */
function networkIn(description, tensors, data) {
  const given = description.network;
  if (given.stage_controls || given.dtype !== "float64" || given.n_features > 2)
    throw new Unfit(
      "The network has stage controls, single precision or more than two features, which this page cannot show",
    );
  const sizes = {
    features: given.n_features,
    augment: given.augment,
    layers: given.n_layers,
    outputs: given.n_outputs,
  };
  for (const [name, size] of Object.entries(sizes))
    if (!Number.isInteger(size) || size < 0 || size > LARGEST_SIZE)
      throw new Unfit(`The network has ${Number(size)} ${name}; this page shows up to ${LARGEST_SIZE}`);
  const { A, b, name } = given.tableau;
  const isRow = (/** @type {unknown} */ row) =>
    Array.isArray(row) && row.length === b.length && row.every((one) => typeof one === "number");
  if (!isRow(b) || A.length !== b.length || !A.every(isRow) || b.length > MOST_STAGES)
    throw new Unfit(`The method must have up to ${MOST_STAGES} stages`);
  /** @type {import("./experiment.js").NetworkSpec} */
  const net = {
    ...sizes,
    ...{ tableau: { A, b }, activation: given.activation, field: given.field, residual: given.residual === true },
    ...{ timeSteps: given.time_steps, horizon: given.horizon },
  };
  const last = partsOf(net)[4];
  const u = new Float64Array(last.begin + sizeOf(last));
  for (const part of partsOf(net)) {
    const [begin, end] = tensors[part.name].data_offsets;
    partOf(net, u, part.name).set(new Float64Array(data.slice(begin, end).buffer, 0, sizeOf(part)));
  }
  if (!u.every(Number.isFinite)) throw new Unfit("The controls in the file are not finite");
  const kind = description.metadata.estimator?.kind;
  return { net, tableauName: String(name), u, isCurve: kind === "ODERegressor" || net.features === 1 };
}

/** @param {Uint8Array} data @returns {{metadata: any, tensors: any, start: number}} */
function headerOf(data) {
  const length = data.length < 8 ? 0 : Number(new DataView(data.buffer, data.byteOffset).getBigUint64(0, true));
  if (data.length < 8 + length || length === 0 || length > LARGEST_HEADER)
    throw new RangeError("The file is truncated, or no model of ocdl");
  try {
    const tensors = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data.subarray(8, 8 + length)));
    return { metadata: tensors.__metadata__ ?? {}, tensors, start: 8 + length };
  } catch {
    throw new RangeError("The file is damaged, or no model of ocdl");
  }
}

/** @param {Uint8Array} data @param {string} digest @param {number} start */
async function requireDigest(data, digest, start) {
  const header = new TextDecoder().decode(data.subarray(8, start));
  const place = 8 + header.indexOf(`"sha256":"${digest}`) + '"sha256":"'.length;
  const zeroed = data.slice();
  zeroed.set(new TextEncoder().encode(NO_DIGEST), place);
  if (!/^[0-9a-f]{64}$/.test(digest) || (await sha256(zeroed)) !== digest)
    throw new RangeError("The file is damaged: its contents do not have the SHA-256 that it was written with");
}
