"""Store what ``ocdl reproduce`` has drawn and judged for the site: small pictures and the claims.

ocdl reproduce --seeds 5 --out paper
python docs/store_paper.py paper

Pictures become PNG files of 64 colours, a tenth of their size; claims of several folders, of a claim the first that is
judged, become one file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PIL import Image

STORED = Path(__file__).parent / "paper"
COLOURS = 64


def store(folders: list[Path]) -> None:
    """Store the figures and the claims of these folders."""
    STORED.mkdir(exist_ok=True)
    claims: dict[int, dict[str, object]] = {}
    for folder in folders:
        for picture in sorted(folder.glob("figures/*.png")):
            small = (
                Image.open(picture)
                .convert("RGB")
                .quantize(COLOURS, dither=Image.Dither.NONE)
            )
            small.save(STORED / picture.name, optimize=True)
        found = json.loads(
            (folder / "claims.json").read_text(encoding="utf-8")
        )
        for claim in found["claims"]:
            if (
                claim["number"] not in claims
                or claims[claim["number"]]["verdict"] == "not evaluated"
            ):
                claims[claim["number"]] = claim | {
                    "seeds": found["seeds"]
                }
    text = json.dumps({"claims": list(claims.values())}, indent=1)
    (STORED / "claims.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    store([Path(name) for name in sys.argv[1:]])
