"""Verdicts on claims, with a remark for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ocdl.reproduce.cases import Case
from ocdl.reproduce.results import Results

AT_LEAST, AT_MOST = 0.9, 0.1  # fractions of the cases from which a claim holds, and up to which it fails
HOLDS, MIXED, FAILS, NOT_EVALUATED, NOT_JUDGED = "holds", "mixed", "fails", "not evaluated", "not judged"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and the measurable statement that represents it."""

    number: int
    claim: str
    measure: str
    cases: Callable[[Results], Iterator[Case]]
    holds: str  # the remark if nearly all cases are as claimed,
    mixed: str  # if some are,
    fails: str  # and if hardly any is


@dataclass(frozen=True)
class Verdict:
    """The cases of a claim and what follows from them."""

    claim: Claim
    cases: list[Case] = field(default_factory=list)
    is_evaluated: bool = True  # False if the trainings are too short

    @property
    def fraction(self) -> float:
        """Return the fraction of the cases that are as claimed."""
        return float(np.mean([case.holds for case in self.cases])) if self.cases else float("nan")

    @property
    def word(self) -> str:
        """Return holds, mixed or fails; not evaluated if runs are missing, not judged after a quick run."""
        if not self.is_evaluated:
            return NOT_JUDGED
        if not self.cases:
            return NOT_EVALUATED
        return HOLDS if self.fraction >= AT_LEAST else FAILS if self.fraction <= AT_MOST else MIXED

    @property
    def count(self) -> str:
        """Return how many cases are as claimed; empty if the claim is not judged."""
        return _count(self.cases) if self.is_evaluated else ""

    @property
    def remark(self) -> str:
        """Return a remark on the verdict; if cases differ, with the number per group."""
        if self.word == NOT_JUDGED:
            return "The trainings of a quick run are too short to say."
        if self.word == NOT_EVALUATED:
            return "The trainings that it compares were not made."
        sentence = {HOLDS: self.claim.holds, MIXED: self.claim.mixed, FAILS: self.claim.fails}[self.word]
        groups = dict.fromkeys(case.group for case in self.cases)
        if self.fraction in (0, 1) or len(groups) == 1:
            return sentence
        counts = (f"{group} {_count([case for case in self.cases if case.group == group])}" for group in groups)
        return f"{sentence} As claimed: {', '.join(counts)}."

    @property
    def medians(self) -> dict[str, float]:
        """Return the median of each number over the cases."""
        names = list(dict.fromkeys(name for case in self.cases for name in case.numbers))
        values = {name: [case.numbers[name] for case in self.cases if name in case.numbers] for name in names}
        return {name: float(np.median(entries)) for name, entries in values.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict for JSON."""
        return {
            "number": self.claim.number,
            "claim": self.claim.claim,
            "measure": self.claim.measure,
            "remark": self.remark,
            "verdict": self.word,
            "holds_in": sum(case.holds for case in self.cases),
            "cases": [{"where": case.where, "holds": case.holds, **case.numbers} for case in self.cases],
            "medians": self.medians,
        }


def _count(cases: list[Case]) -> str:
    return f"{sum(case.holds for case in cases)} of {len(cases)}"
