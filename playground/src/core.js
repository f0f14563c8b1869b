// The compiled core: its memory, its calls, its refusals.

/** What the core says when it refuses something: a sentence for the reader. */
export class Refusal extends Error {}

/** Doubles in the memory of the core. A view ends when the memory grows, so each use asks for a new one. */
export class Doubles {
  /** @param {Core} core @param {number} length */
  constructor(core, length) {
    this.core = core;
    this.length = length;
    this.pointer = core.call("allocate", Math.max(8, 8 * length));
  }

  get view() {
    return this.core.doublesAt(this.pointer, this.length);
  }

  /** @returns {Float64Array<ArrayBuffer>} a copy that lasts */
  copy() {
    return this.view.slice();
  }

  free() {
    this.core.call("release", this.pointer);
  }
}

/** One instance of the compiled core. */
export class Core {
  /** @param {Uint8Array} bytes the WebAssembly module */
  constructor(bytes) {
    const clock = (/** @type {number} */ _id, /** @type {bigint} */ _precision, /** @type {number} */ result) => {
      this.bytesView().setBigUint64(result, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    };
    // The core reads the clock. Whatever else its C library could ask a system for does not exist here.
    const system = new Proxy(
      { clock_time_get: clock },
      { get: (known, name) => Reflect.get(known, name) ?? (() => 52) },
    );
    const module = new WebAssembly.Module(/** @type {BufferSource} */ (bytes));
    const imports = Object.fromEntries(
      WebAssembly.Module.imports(module).map(({ name }) => [name, Reflect.get(system, name)]),
    );
    const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
    /** @type {any} */
    this.exports = instance.exports;
    this.exports._initialize();
    this.tableauNames = this.textAt(this.call("tableau_names")).split(" ");
  }

  bytesView() {
    return new DataView(this.exports.memory.buffer);
  }

  /** @param {number} pointer @param {number} length @returns {Float64Array<ArrayBuffer>} */
  doublesAt(pointer, length) {
    return new Float64Array(this.exports.memory.buffer, pointer, length);
  }

  /** @param {number} pointer */
  textAt(pointer) {
    const bytes = new Uint8Array(this.exports.memory.buffer);
    return new TextDecoder().decode(bytes.slice(pointer, bytes.indexOf(0, pointer)));
  }

  /**
   * Calls a function of the core. Texts are passed as memory that lives as long as the call.
   * @param {string} name
   * @param {...(number | string | Doubles | null)} given
   * @returns {number}
   */
  call(name, ...given) {
    const { exports } = this;
    const stack = exports.__stack_pointer.value;
    /** @type {number[]} */
    const texts = [];
    const values = given.map((value) => {
      if (value instanceof Doubles) return value.pointer;
      if (typeof value !== "string") return value ?? 0;
      const bytes = new TextEncoder().encode(value + "\0");
      const pointer = exports.allocate(bytes.length);
      new Uint8Array(exports.memory.buffer).set(bytes, pointer);
      texts.push(pointer);
      return pointer;
    });
    try {
      return exports[name](...values);
    } catch (error) {
      exports.__stack_pointer.value = stack;
      const message = exports.thrown_message();
      if (message === 0) throw error;
      const text = this.textAt(message);
      exports.forget_thrown();
      throw new Refusal(text);
    } finally {
      texts.forEach((pointer) => exports.release(pointer));
    }
  }

  /** @param {ArrayLike<number>} numbers */
  doubles(numbers) {
    const made = new Doubles(this, numbers.length);
    made.view.set(numbers);
    return made;
  }

  /** @param {number} length */
  room(length) {
    return new Doubles(this, length);
  }

  /**
   * Runs a function with memory that is given back afterwards.
   * @template T
   * @param {(borrow: (numbers: ArrayLike<number> | number) => Doubles) => T} body a number asks for room
   * @returns {T}
   */
  borrowing(body) {
    /** @type {Doubles[]} */
    const all = [];
    try {
      return body((numbers) => {
        const made = typeof numbers === "number" ? this.room(numbers) : this.doubles(numbers);
        all.push(made);
        return made;
      });
    } finally {
      all.forEach((one) => one.free());
    }
  }
}
