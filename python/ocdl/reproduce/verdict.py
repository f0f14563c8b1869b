"""What the numbers say of a claim, and a sentence that fits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ocdl.reproduce.cases import Case
from ocdl.reproduce.results import Results

AT_LEAST, AT_MOST = 0.9, 0.1  # shares of the cases from which on a claim holds, and up to which it fails
HOLDS, MIXED, FAILS, NOT_EVALUATED, NOT_JUDGED = "holds", "mixed", "fails", "not evaluated", "not judged"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and the measurable one that stands for it here."""

    number: int
    claim: str
    measure: str
    cases: Callable[[Results], Iterator[Case]]
    holds: str  # what to make of it when nearly all cases are as claimed,
    mixed: str  # when some are,
    fails: str  # and when hardly any is


@dataclass(frozen=True)
class Verdict:
    """What the numbers say of a claim."""

    claim: Claim
    cases: list[Case] = field(default_factory=list)
    judged: bool = True  # False where the trainings were too short to say anything

    @property
    def share(self) -> float:
        """Return the share of the cases that are as claimed."""
        return float(np.mean([case.holds for case in self.cases])) if self.cases else float("nan")

    @property
    def word(self) -> str:
        """Return holds, mixed or fails; not evaluated where the runs are missing, not judged after a quick look."""
        if not self.judged:
            return NOT_JUDGED
        if not self.cases:
            return NOT_EVALUATED
        return HOLDS if self.share >= AT_LEAST else FAILS if self.share <= AT_MOST else MIXED

    @property
    def count(self) -> str:
        """Return in how many cases it is as claimed; nothing where that is not judged."""
        return _count(self.cases) if self.judged else ""

    @property
    def remark(self) -> str:
        """Return what to make of the verdict, and where cases differ, in which groups they are as claimed."""
        if self.word == NOT_JUDGED:
            return "The trainings of a quick run are too short to say."
        if self.word == NOT_EVALUATED:
            return "The trainings that it compares were not made."
        sentence = {HOLDS: self.claim.holds, MIXED: self.claim.mixed, FAILS: self.claim.fails}[self.word]
        groups = dict.fromkeys(case.group for case in self.cases)
        if self.share in (0, 1) or len(groups) == 1:
            return sentence
        counts = (f"{group} {_count([case for case in self.cases if case.group == group])}" for group in groups)
        return f"{sentence} As claimed: {', '.join(counts)}."

    @property
    def medians(self) -> dict[str, float]:
        """Return the median of each number over the cases."""
        names = list(dict.fromkeys(name for case in self.cases for name in case.numbers))
        found = {name: [case.numbers[name] for case in self.cases if name in case.numbers] for name in names}
        return {name: float(np.median(values)) for name, values in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON can hold it."""
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
