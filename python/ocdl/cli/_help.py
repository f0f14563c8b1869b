"""Help that fits the terminal: sentences are wrapped, and examples can still be copied into a shell."""

from __future__ import annotations

import argparse
import re
import textwrap

CONTINUED = " \\"  # the command continues on the next line


class HelpFormatter(argparse.HelpFormatter):
    """Wraps the paragraphs of a text; an indented line is an example: a command and, optionally, what it does."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_fill(paragraph.splitlines(), width) for paragraph in text.split("\n\n"))


def _fill(lines: list[str], width: int) -> str:
    if any(line.startswith(" ") for line in lines):
        return "\n".join(_wrap_example(line, width) for line in lines)
    return textwrap.fill(" ".join(lines), width, break_long_words=False, break_on_hyphens=False)


def _wrap_example(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    command, *description = re.split(r"(?<=\S) {2,}", line.strip(), maxsplit=1)
    command_lines = textwrap.wrap(
        command,
        width - len(CONTINUED),
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    explanation = [
        textwrap.fill(text, width, initial_indent="      ", subsequent_indent="      ") for text in description
    ]
    return "\n".join([f"{CONTINUED}\n".join(command_lines), *explanation])
