"""Build the playground: compile the core to WebAssembly and put everything into one HTML page that needs nothing else.

``make playground`` runs it in the virtual environment, which has ziglang, the compiler. The page goes to the package's
sources, where wheels take it from, and into the installed package.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import ocdl
from ocdl.storage.container import FORMAT_VERSION
from ocdl.storage.disk import replace_file

HERE = Path(__file__).parent
CPP = HERE.parent / "cpp"
SOURCES = HERE / "src"
WORK = HERE.parent / "build" / "playground"
EIGEN = Path(sysconfig.get_path("platlib")) / "cmeel.prefix" / "include" / "eigen3"
# The flags of CMakeLists.txt, for a target whose vectors have 128 bits and whose products are not fused: that of the
# baseline core, whose bits it has.
FLAGS = [
    *("-target", "wasm32-wasi", "-mexec-model=reactor", "-msimd128", "-std=c++20", "-O3", "-DNDEBUG", "-s"),
    *("-fexceptions", "-fno-math-errno", "-fno-trapping-math", "-DEIGEN_DONT_PARALLELIZE"),
    *("-Wl,--export=__stack_pointer", f"-I{CPP}", "-isystem", str(EIGEN)),
]
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)


def compile_core() -> bytes:
    """Return the compiled core; the compiler keeps what has not changed."""
    WORK.mkdir(parents=True, exist_ok=True)
    target = WORK / "core.wasm"
    sources = sorted([*CPP.glob("wasm/*.cpp"), *CPP.glob("ocdl/*/*.cpp")])
    cache = {name: str(WORK / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    command = [sys.executable, "-m", "ziglang", "c++", *FLAGS, "-o", str(target), *map(str, sources)]
    subprocess.run(command, check=True, env=os.environ | cache)
    return target.read_bytes()


def bundled(entry: str) -> str:
    """Return a module and all that it imports as one script: each a function that returns what it exports."""
    done: list[str] = []
    pieces: list[str] = []

    def add(name: str) -> None:
        if name in done:
            return
        done.append(name)
        text = (SOURCES / f"{name}.js").read_text(encoding="utf-8")
        for imported in IMPORT.finditer(text):
            add(imported[2])
        exports = ", ".join(EXPORT.findall(text))
        body = re.sub(r"^export ", "", IMPORT.sub(r"const {\1} = modules.\2;\n", text), flags=re.MULTILINE)
        pieces.append(f"modules.{name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n")

    add(entry)
    script = '"use strict";\nconst modules = {};\n' + "".join(pieces)
    if "import {" in script or "</script" in script.lower():
        raise ValueError(f"{entry}: an import that is not bundled, or the end of a script in a text")
    return script


def page(core: bytes) -> str:
    """Return the page. Its policy lets this very script run, the core in a worker, and nothing be loaded."""
    script, style = bundled("main"), (HERE / "style.css").read_text(encoding="utf-8")

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    kinds = (ocdl.ODEClassifier, ocdl.ODERegressor)
    facts = {
        "version": ocdl.__version__,
        "formatVersion": FORMAT_VERSION,
        "parameters": {kind.__name__: kind().get_params(deep=False) for kind in kinds},
    }
    policy = [
        *("default-src 'none'", f"script-src {digest(script)} 'wasm-unsafe-eval' blob:", "worker-src blob:"),
        *(f"style-src {digest(style)}", "img-src data: blob:", "base-uri 'none'", "form-action 'none'"),
    ]
    parts = {
        "policy": "; ".join(policy),
        "style": style,
        "facts": json.dumps(facts).replace("<", "\\u003c"),
        "core": base64.b64encode(gzip.compress(core, 9, mtime=0)).decode(),
        "worker": bundled("worker"),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], (HERE / "page.html").read_text(encoding="utf-8"))


def main() -> None:
    """Write the page."""
    text = page(compile_core())
    for package in {HERE.parent / "python" / "ocdl", Path(ocdl.__file__).parent}:
        replace_file(str(package / "playground.html"), text.encode())
    print(f"ocdl playground opens the page: {len(text.encode()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
