// The page's end of the worker: questions with answers, and pictures that come by themselves.

/** What the core or the worker refuses, as a sentence. */
export class EngineError extends Error {}

export class Engine {
  /**
   * @param {string} source of the worker
   * @param {(frame: import("./session.js").Frame, isPlaying: boolean | null) => void} onFrame whether it plays is null
   *   where a later order is still on its way to the worker
   * @param {(message: string) => void} onFailure
   */
  constructor(source, onFrame, onFailure) {
    this.worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    this.asked = 0;
    this.setups = 0;
    this.orders = 0;
    this.worker.onerror = (event) => {
      event.preventDefault();
      onFailure(event.message);
    };
    this.worker.onmessage = ({ data }) => {
      if (data.kind === "frame") {
        if (data.setup === this.setups) onFrame(data.frame, data.order === this.orders ? data.isPlaying : null);
        return;
      }
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error === undefined) waiting?.resolve(data.value);
      else waiting?.reject(new EngineError(data.error));
    };
  }

  /**
   * @param {string} kind
   * @param {object} [given]
   * @returns {Promise<any>}
   */
  ask(kind, given = {}) {
    const id = this.asked++;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.worker.postMessage({ ...given, kind, id });
    return answer;
  }

  /** Frames of what was set up before are dropped from here on. @param {import("./problem.js").Problem | null} problem none: it rests @param {number} iterations */
  setUp(problem, iterations) {
    this.setups += 1;
    return this.order("setup", { problem, iterations, setup: this.setups });
  }

  /** Asks for something that starts or ends playing. @param {string} kind @param {object} [given] */
  order(kind, given = {}) {
    this.orders += 1;
    return this.ask(kind, { ...given, order: this.orders });
  }

  /** @param {import("./session.js").Look} look */
  look(look) {
    this.worker.postMessage({ kind: "look", look });
  }
}
