"""Changed files again, by a fuzzer that keeps those which reach new lines of ocdl and changes them further.

    python tests/support/fuzz_coverage.py models -runs=100000
    python tests/support/fuzz_coverage.py checkpoints -runs=100000

Needs atheris from PyPI; all other options are those of libFuzzer.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["ocdl"]):
    import ocdl.network.files
    import ocdl.storage.container
    import ocdl.training.checkpoint  # noqa: F401

from fuzz_files import ModelFileError, mutants, mutated, sealed, targets


def changed_further(data: bytes, max_size: int, seed: int) -> bytes:
    """Return a file with random changes, or with changes that respect the format; its digest is right."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.5:
        return sealed(atheris.Mutate(data, max_size))
    source = mutants(rng, data)
    try:
        for _ in range(rng.integers(1, 7)):
            actual, _ = next(source)
    except (LookupError, TypeError, ValueError):  # the file is none any more
        actual = sealed(mutated(rng, data))
    return actual[:max_size]


def main() -> None:
    kind, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        corpus, path = Path(folder, "corpus"), Path(folder, "file.ocdl")
        corpus.mkdir()
        originals = targets(kind, path)
        for number, (data, _) in enumerate(originals):
            Path(corpus, str(number)).write_bytes(data)
        uses = list(dict.fromkeys(use for _, use in originals))

        def load(data: bytes) -> None:
            path.write_bytes(data)
            for use in uses:
                try:
                    use(path)
                except ModelFileError:
                    continue

        limits = ["-max_len=16384", "-timeout=5", "-rss_limit_mb=1000"]
        atheris.Setup([sys.argv[0], str(corpus), *limits, *options], load, custom_mutator=changed_further)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
