// A table of points: two columns of numbers and a label, or for a curve two columns of numbers.

import { FARTHEST, MOST_CLASSES, MOST_POINTS, rounded } from "./link.js";

const LARGEST_FILE = 1e6; // bytes

/**
 * @typedef {object} Table
 * @property {import("./datasets.js").Point[]} points scaled to the plane, unless they fit already
 * @property {string[] | null} names of the columns
 * @property {number[]} mean what is subtracted from the columns
 * @property {number[]} scale what they are divided by then
 * @property {string[]} classes
 * @property {string} note for the reader
 */

/** @param {number} size in bytes, before a file is read */
export function requireModestSize(size) {
  if (size > LARGEST_FILE)
    throw new RangeError(
      `The file has ${(size / 1e6).toFixed(1)} MB; this page takes up to ${LARGEST_FILE / 1e6} MB. The command “ocdl train --data FILE” takes any size.`,
    );
}

/**
 * @param {string} text
 * @param {boolean} isCurve
 * @returns {Table}
 */
export function parsedTable(text, isCurve) {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split(/\r\n|\n|\r/)
    .map((line, i) => ({ number: i + 1, line }))
    .filter(({ line }) => line.trim() !== "");
  if (!lines.length) throw new RangeError("The file is empty; a point takes a line such as 0.5,-0.2,blue");
  const separator = [",", ";", "\t"].find((mark) => lines[0].line.includes(mark)) ?? ",";
  const rows = lines.map(({ number, line }) => ({ number, cells: cellsOf(line, separator) }));
  const width = isCurve ? 2 : 3;
  const wanted = isCurve ? "two columns, x and y" : "three columns: two numbers and a label";
  for (const { number, cells } of rows)
    if (cells.length !== width)
      throw new RangeError(`Line ${number} has ${counted(cells.length, "column")}; expected are ${wanted}`);
  const isHeader = rows[0].cells.slice(0, 2).every((cell) => !isNumber(cell));
  const names = isHeader ? rows[0].cells : null;
  const twice = names?.find((name, j) => names.indexOf(name) !== j);
  if (twice !== undefined) throw new RangeError(`Line 1 calls two columns “${shortened(twice)}”`);
  const body = isHeader ? rows.slice(1) : rows;
  if (!body.length) throw new RangeError(`The file has a header but no rows; expected are ${wanted}`);
  if (body.length > MOST_POINTS)
    throw new RangeError(
      `The file has ${body.length} rows; this page takes up to ${MOST_POINTS}. The command “ocdl train --data FILE” takes any number.`,
    );
  for (const { number, cells } of body)
    for (const cell of cells.slice(0, 2))
      if (!isNumber(cell)) throw new RangeError(`Line ${number} holds “${shortened(cell)}” where a number is expected`);
  const columns = [0, 1].map((j) => body.map(({ cells }) => Number(cells[j])));
  const classes = isCurve ? [] : classesOf(body.map(({ cells }) => cells[2]));
  const fits = columns.flat().every((x) => Math.abs(x) <= FARTHEST) && columns.every((column) => spread(column) > 0.5);
  const mean = columns.map((column) => (fits ? 0 : (Math.min(...column) + Math.max(...column)) / 2));
  const scale = columns.map((column) => (fits ? 1 : spread(column) / 2 || 1));
  const points = body.map(({ cells }) => {
    const [x, y] = [0, 1].map((j) => rounded((Number(cells[j]) - mean[j]) / scale[j]));
    return { x, y, target: isCurve ? 0 : classes.indexOf(cells[2]) };
  });
  const kinds = isCurve ? "" : ` of ${classes.length} classes`;
  const note = `${counted(points.length, "point")}${kinds}${fits ? "" : ", scaled to the plane from -1 to 1"}`;
  return { points, names, mean, scale, classes, note };
}

/** Separators between quotes separate nothing. @param {string} line @param {string} separator */
function cellsOf(line, separator) {
  const cells = [""];
  let isQuoted = false;
  for (const letter of line) {
    if (letter === '"') isQuoted = !isQuoted;
    if (letter === separator && !isQuoted) cells.push("");
    else cells[cells.length - 1] += letter;
  }
  return cells.map((cell) =>
    cell
      .trim()
      .replace(/^"(.*)"$/, "$1")
      .replaceAll('""', '"'),
  );
}

/** @param {string[]} labels */
function classesOf(labels) {
  const classes = [...new Set(labels)].sort((a, b) =>
    isNumber(a) && isNumber(b) ? Number(a) - Number(b) : a < b ? -1 : 1,
  );
  if (classes.length < 2)
    throw new RangeError(`All rows have the label “${shortened(classes[0])}”; there is nothing to tell apart`);
  if (classes.length > MOST_CLASSES)
    throw new RangeError(
      `The third column has ${classes.length} different labels; this page tells up to ${MOST_CLASSES} apart`,
    );
  return classes;
}

const isNumber = (/** @type {string} */ cell) =>
  /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(cell) && Number.isFinite(Number(cell));
const spread = (/** @type {number[]} */ column) => Math.max(...column) - Math.min(...column);
const shortened = (/** @type {string} */ text) => (text.length > 30 ? `${text.slice(0, 30)}…` : text);
const counted = (/** @type {number} */ count, /** @type {string} */ noun) =>
  `${count} ${noun}${count === 1 ? "" : "s"}`;
