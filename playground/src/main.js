// The start of the page: the core is unpacked, and the page comes to life.

import { App } from "./app.js";
import { byId } from "./elements.js";
import { listenToSharing } from "./sharing.js";

// A module with a single instruction of WebAssembly SIMD, i8x16.splat.
const SIMD_PROBE = Uint8Array.of(
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0,
  1,
  5,
  1,
  96,
  0,
  1,
  123,
  3,
  2,
  1,
  0,
  10,
  8,
  1,
  6,
  0,
  65,
  0,
  253,
  15,
  11,
);

/** @param {string} base64 of a gzip stream */
async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function chooseTheme() {
  const root = document.documentElement;
  root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const repaint = () => window.dispatchEvent(new Event("resize"));
  byId("theme", HTMLButtonElement).addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    repaint();
  });
}

async function start() {
  chooseTheme();
  const text = (/** @type {string} */ id) => byId(id, HTMLScriptElement).textContent ?? "";
  const notice = byId("notice", HTMLElement);
  try {
    if (
      typeof WebAssembly !== "object" ||
      !WebAssembly.validate(SIMD_PROBE) ||
      typeof DecompressionStream !== "function"
    )
      throw new Error("this browser lacks WebAssembly SIMD, which the core of ocdl needs; browsers since 2023 have it");
    const app = new App(text("worker"), await unpacked(text("core")));
    window.addEventListener("resize", () => (app.isDirty = true));
    listenToSharing(app, JSON.parse(text("facts")));
    await app.ready;
    Object.assign(window, { playground: app });
  } catch (error) {
    notice.hidden = false;
    const sentence = notice.querySelector("p");
    if (sentence) sentence.textContent = `The playground cannot start: ${/** @type {Error} */ (error).message}.`;
  }
}

start();
