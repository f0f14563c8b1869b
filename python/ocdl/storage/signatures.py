"""What a file looks like that is none of ours, told by its first bytes."""

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
LONGEST_CUT = 3  # bytes of a character of UTF-8 that the end of the first bytes may leave


def look_of(first: bytes) -> str:
    """Return what a file looks like that begins with these bytes; nothing where that cannot be told."""
    for signature, meaning in SIGNATURES.items():
        if first.startswith(signature):
            return meaning
    text = _text(first)
    if not text:
        return ""
    beginning = text.lstrip("\ufeff \r\n")
    if beginning[:1] in ("{", "["):
        return "text in JSON"
    if beginning[:1] == "<":
        return "text in HTML or XML"
    line = beginning.partition("\n")[0]
    found = [name for mark, name in SEPARATORS.items() if mark in line]
    return f"text with {found[0]}, as tables have them" if found else "text"


def _text(first: bytes) -> str:
    """Return the bytes as text, if they are some."""
    for cut in range(LONGEST_CUT + 1):
        try:
            text = first[: len(first) - cut].decode()
        except UnicodeDecodeError:
            continue
        return text if all(c.isprintable() or c in "\ufeff\t\r\n" for c in text) else ""
    return ""
