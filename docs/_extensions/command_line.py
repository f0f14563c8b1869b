"""The directive ``ocdl-commands``: a section for every subcommand, from the parsers that read the command line."""

from __future__ import annotations

import argparse
import re
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from ocdl.cli import _parser

WIDTH = 100  # of the usage line


class Commands(SphinxDirective):
    """Sections with a sentence, the usage, a table of options, and what ``--help`` says below them."""

    def run(self) -> list[nodes.Node]:
        """Return a section per subcommand."""
        parser = _parser()
        commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        return [self._section(name, command) for name, command in commands.choices.items()]

    def _section(self, name: str, parser: argparse.ArgumentParser) -> nodes.section:
        section = nodes.section("", nodes.title("", "", nodes.literal("", f"ocdl {name}")))
        section["names"].append(f"ocdl {name}")
        self.state.document.note_implicit_target(section, section)
        if parser.description:
            section += nodes.paragraph("", _sentence(parser.description))
        section += _literal(_usage(parser))
        rows = [(_left(action), _help(parser, action)) for action in parser._actions if not _is_help(action)]
        section += _table(("argument", "meaning"), rows)
        if parser.epilog:
            section += _literal(_dedented(parser.epilog))
        return section


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, "")
    return formatter.format_help().strip()


def _left(action: argparse.Action) -> str:
    value = action.metavar or ("" if action.nargs == 0 else "{" + ",".join(map(str, action.choices or ())) + "}")
    if isinstance(value, tuple):
        value = " ".join(value)
    if not action.option_strings:
        return value if value != "{}" else action.dest
    return ", ".join(action.option_strings) + (f" {value}" if value not in ("", "{}") else "")


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = argparse.HelpFormatter(parser.prog)
    return formatter._expand_help(action) if action.help else ""


def _is_help(action: argparse.Action) -> bool:
    return isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS


def _sentence(text: str) -> str:
    text = text.strip()
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _dedented(text: str) -> str:
    return re.sub(r"^ {2}", "", text, flags=re.MULTILINE).strip("\n")


def _literal(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="text")


def _table(header: tuple[str, str], rows: list[tuple[str, str]]) -> nodes.table:
    group = nodes.tgroup(cols=2)
    group += [nodes.colspec(colwidth=35), nodes.colspec(colwidth=65)]
    head, body = nodes.thead(), nodes.tbody()
    head += nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in header))
    for left, right in rows:
        body += nodes.row(
            "",
            nodes.entry("", nodes.paragraph("", "", nodes.literal("", left))),
            nodes.entry("", nodes.paragraph("", right)),
        )
    group += [head, body]
    return nodes.table("", group)


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("ocdl-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
