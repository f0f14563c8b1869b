"""Recognise the format of a foreign file by its first bytes."""

from __future__ import annotations

SIGNATURES = {
    b"PK\x03\x04": "a ZIP archive, as .npz files are",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "a file packed by gzip",
    b"\x93NUMPY": "an NPY file of NumPy",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"\x89HDF": "an HDF5 file",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%PDF": "a PDF file",
    b"SQLite format 3": "a database of SQLite",
    b"\x7fELF": "a program",
}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
LONGEST_CUT = 3  # bytes of an incomplete UTF-8 character at the end


def recognise_format(first: bytes) -> str:
    """Describe the format of a file that begins with these bytes; empty if it is unknown."""
    for signature, meaning in SIGNATURES.items():
        if first.startswith(signature):
            return meaning
    text = _decode_text(first)
    if not text:
        return ""
    beginning = text.lstrip("\ufeff \r\n")
    if beginning[:1] in ("{", "["):
        return "text in JSON"
    if beginning[:1] == "<":
        return "text in HTML or XML"
    line = beginning.partition("\n")[0]
    separators = [name for mark, name in SEPARATORS.items() if mark in line]
    return f"text with {separators[0]}, as tables have them" if separators else "text"


def _decode_text(first: bytes) -> str:
    """Return the bytes as printable text; empty if they are none."""
    for cut in range(LONGEST_CUT + 1):
        try:
            text = first[: len(first) - cut].decode()
        except UnicodeDecodeError:
            continue
        return text if all(c.isprintable() or c in "\ufeff\t\r\n" for c in text) else ""
    return ""
