"""Every public name says what it is, what it takes and returns, what can go wrong, and shows it by an example.

`test_package.py` runs the examples.
"""

import enum
import inspect
import re
import types
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import pytest

import ocdl

MODULES = (ocdl, ocdl.datasets, ocdl.distributed, ocdl.losses, ocdl.plot)
UNDERLINED = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", re.MULTILINE)
BY_SKLEARN = re.compile(r"set_\w+_request")
OF_SKLEARN = {"n_features_in_", "feature_names_in_"}
CANNOT_FAIL = {"History.followed_by", "History.plot", "Result.followed_by"}


class Public(NamedTuple):
    """Something that a user can name."""

    name: str
    thing: Any
    owner: type | None = None

    @property
    def text(self) -> str:
        return inspect.getdoc(self.thing) or ""

    @property
    def sections(self) -> dict[str, str]:
        _, *parts = UNDERLINED.split(self.text)
        return dict(zip(parts[::2], parts[1::2], strict=True))

    def listed(self, section: str) -> set[str]:
        """Return the names that a section describes."""
        entries = ENTRY.findall(self.sections.get(section, ""))
        return {name.lstrip("*") for entry in entries for name in entry.split(", ")}

    @property
    def parameters(self) -> list[str]:
        first = 1 if self.owner and not isinstance(inspect.getattr_static(self.owner, self.last), staticmethod) else 0
        if isinstance(inspect.getattr_static(self.owner, self.last, None), classmethod):
            first = 0
        return list(inspect.signature(self.thing).parameters)[first:]

    @property
    def last(self) -> str:
        return self.name.rpartition(".")[2]


def public_names() -> Iterator[Public]:
    for module in MODULES:
        names = getattr(module, "__all__", None) or [name for name in dir(module) if name[0].isupper()]
        for name in names:
            thing = getattr(module, name)
            if not isinstance(thing, types.ModuleType):
                yield Public(name, thing)


def members(kind: type) -> Iterator[Public]:
    """Yield the methods and properties that a class of ours has of itself or of others of ours."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("ocdl")]
    for name in dict.fromkeys(name for base in ours for name in vars(base)):
        thing = inspect.getattr_static(kind, name)
        is_member = isinstance(thing, (property, cached_property)) or callable(getattr(kind, name))
        if name[0] != "_" and is_member and not isinstance(thing, enum.Enum) and not BY_SKLEARN.fullmatch(name):
            item = thing if isinstance(thing, (property, cached_property)) else getattr(kind, name)
            yield Public(f"{kind.__name__}.{name}", item, kind)


def fields(kind: type) -> set[str]:
    """Return the attributes that a class declares: fields of records, slots, annotations."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("ocdl")]
    named = {name for base in ours for name in (*inspect.get_annotations(base), *getattr(base, "_fields", ()))}
    return {name for name in named if name[0] != "_"}


NAMES = list(public_names())
CLASSES = [item for item in NAMES if inspect.isclass(item.thing)]
MEMBERS = [member for item in CLASSES for member in members(item.thing)]
PROPERTIES = [member for member in MEMBERS if isinstance(member.thing, (property, cached_property))]
FUNCTIONS = [item for item in (*NAMES, *MEMBERS) if item not in CLASSES and item not in PROPERTIES]


def named(item: Public) -> str:
    return item.name


def test_there_are_names_of_every_kind() -> None:
    assert len(NAMES) > 60
    assert len(MEMBERS) > 80
    assert {"Tableau.order", "History.accuracy", "Network.dim"} <= set(map(named, PROPERTIES))
    assert {"train", "Network.prune", "plot", "data"} - set(map(named, FUNCTIONS)) == {"plot"}


@pytest.mark.parametrize("item", [*NAMES, *MEMBERS], ids=named)
def test_public_objects_have_a_summary_and_an_example(item: Public) -> None:
    assert re.match(r"\S.{10,}", item.text), "there is no sentence"
    if item not in PROPERTIES:  # the class shows them
        assert ">>> " in item.sections.get("Examples", ""), "there is no example"


@pytest.mark.parametrize("item", FUNCTIONS, ids=named)
def test_functions_document_parameters_returns_and_errors(item: Public) -> None:
    assert [name for name in item.parameters if name not in item.listed("Parameters")] == []
    if inspect.signature(item.thing).return_annotation not in (None, "None"):
        assert item.sections.get("Returns", "").strip()
    if item.parameters and item.name not in CANNOT_FAIL and "CustomLoss" not in item.name:
        assert item.sections.get("Raises", "").strip()


@pytest.mark.parametrize("item", CLASSES, ids=named)
def test_classes_document_parameters_and_attributes(item: Public) -> None:
    bases = [Public(base.__name__, base) for base in item.thing.__mro__ if base.__module__.startswith("ocdl")]
    described = {name for base in bases for part in ("Parameters", "Attributes") for name in base.listed(part)}
    assert fields(item.thing) - described == set()
    if item.sections.get("Parameters"):
        assert [name for name in item.parameters if name not in described] == []
        assert item.sections.get("Raises", "").strip()


@pytest.mark.parametrize("item", CLASSES, ids=named)
def test_every_attribute_is_shown(item: Public) -> None:
    """Those that are no more than an argument of the constructor are shown by it."""
    own = [member.text for member in MEMBERS if member.owner is item.thing]
    examples = "\n".join(re.findall(r"^ *(?:>>>|\.\.\.) .*", "\n".join([item.text, *own]), re.MULTILINE))
    attributes = item.listed("Attributes") - item.listed("Parameters") - OF_SKLEARN
    assert [name for name in sorted(attributes) if not re.search(rf"\b{name}\b", examples)] == []
