// The worker: the core and one training live here, so that the page never waits for them.

import { certify } from "./certificate.js";
import { Core, Refusal } from "./core.js";
import { Session } from "./session.js";
import { describeTableau } from "./tableau.js";

const SLICE = 0.005; // seconds between two looks at the messages
const CATCH_UP_FRAMES = 25; // in which a link is followed

/** @type {Core} */
let core;
/** @type {Session | null} */
let session = null;
/** @type {import("./session.js").Look | null} a look that has not been answered yet */
let wanted = null;
let isPlaying = false;
let perFrame = Infinity;
let credit = 0; // iterations that may be made before the next frame
let stopAt = Infinity;
let isScheduled = false;
let setup = 0;
let order = 0; // of starting, pausing and stepping: the last one that was heard

const channel = new MessageChannel();
channel.port1.onmessage = turn;

function schedule() {
  if (isScheduled) return;
  isScheduled = true;
  channel.port2.postMessage(null);
}

function turn() {
  isScheduled = false;
  if (!session) return;
  const most = Math.min(Math.floor(credit), stopAt - session.iteration);
  if (isPlaying && most > 0) {
    const before = session.iteration;
    session.run(most, SLICE);
    credit -= session.iteration - before;
  }
  if (isPlaying && (session.iteration >= stopAt || !session.isRunning)) {
    isPlaying = false;
    stopAt = Infinity;
  }
  if (wanted) {
    const frame = session.frame(wanted);
    wanted = null;
    postMessage({ kind: "frame", setup, order, isPlaying, frame });
  }
  if (isPlaying && credit >= 1) schedule();
}

/** @type {Record<string, (given: any) => unknown>} */
const TASKS = {
  core: ({ bytes }) => {
    core = new Core(bytes);
    return { tableaux: core.tableauNames };
  },
  setup: (given) => {
    isPlaying = false; // also where the core refuses the problem
    const made = given.problem && new Session(core, given.problem);
    session?.free();
    session = made;
    setup = given.setup;
    isPlaying = session !== null && given.iterations > 0;
    stopAt = given.iterations || Infinity;
    perFrame = credit = Math.max(8, Math.ceil(given.iterations / CATCH_UP_FRAMES));
    return null;
  },
  play: (given) => {
    isPlaying = given.isPlaying;
    perFrame = credit = given.perFrame;
    stopAt = Infinity;
    return null;
  },
  step: () => {
    isPlaying = false;
    session?.run(1, SLICE);
    return null;
  },
  look: (given) => {
    wanted = given.look;
    credit = Math.min(credit, 1) + perFrame;
    return null;
  },
  tableau: ({ method }) => describeTableau(core, method),
  certify: () => session && certify(core, session.problem, session.controls),
  prune: () => session?.pruned(),
  controls: () => session && { u: session.controls, problem: session.problem, iteration: session.iteration },
};

onmessage = ({ data }) => {
  order = data.order ?? order;
  try {
    const value = TASKS[data.kind](data);
    if (data.id !== undefined) postMessage({ kind: "answer", id: data.id, value });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    postMessage({ kind: "answer", id: data.id, error: message, isRefusal: error instanceof Refusal });
  }
  schedule();
};
