"""Help that fits the terminal: sentences are filled, and examples stay what can be copied into a shell."""

from __future__ import annotations

import argparse
import re
import textwrap

CONTINUED = " \\"  # a shell goes on in the next line


class HelpFormatter(argparse.HelpFormatter):
    """Fills the paragraphs of a text; lines that are indented are examples, a command and perhaps what it does."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_filled(paragraph.splitlines(), width) for paragraph in text.split("\n\n"))


def _filled(lines: list[str], width: int) -> str:
    if any(line.startswith(" ") for line in lines):
        return "\n".join(_example(line, width) for line in lines)
    return textwrap.fill(" ".join(lines), width, break_long_words=False, break_on_hyphens=False)


def _example(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    command, *meaning = re.split(r"(?<=\S) {2,}", line.strip(), maxsplit=1)
    shown = textwrap.wrap(
        command,
        width - len(CONTINUED),
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    explained = [textwrap.fill(text, width, initial_indent="      ", subsequent_indent="      ") for text in meaning]
    return "\n".join([f"{CONTINUED}\n".join(shown), *explained])
