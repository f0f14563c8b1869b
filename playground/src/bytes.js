// Bytes as texts that an address can hold, and back.

/** @param {Uint8Array} bytes */
export function toBase64Url(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @param {string} text */
export function fromBase64Url(text) {
  if (!/^[\w-]*$/.test(text)) throw new RangeError("it holds characters that no link has");
  if (text.length % 4 === 1) throw new RangeError("it was cut off");
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}
