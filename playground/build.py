"""Build the playground: compile the core to WebAssembly and put everything into one HTML page that needs nothing else.

``make playground`` runs it in the virtual environment, which has ziglang, the compiler. The page goes to the package's
sources, where wheels take it from, and into the installed package.
"""

from __future__ import annotations

import base64
import gc
import gzip
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from types import FrameType

if __name__ == "__main__":  # while it imports: an exception there may get lost, or come out as another one
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import ocdl
from ocdl.storage.container import FORMAT_VERSION
from ocdl.storage.disk import replace_file

HERE = Path(__file__).parent
CPP = HERE.parent / "cpp"
SOURCES = HERE / "src"
WORK = HERE.parent / "build" / "playground"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EIGEN = Path(sysconfig.get_path("platlib")) / "cmeel.prefix" / "include" / "eigen3"
# The flags of CMakeLists.txt, for a target whose vectors have 128 bits and whose products are not fused: that of the
# baseline core, whose bits it has.
FLAGS = [
    *("-target", "wasm32-wasi", "-mexec-model=reactor", "-msimd128", "-std=c++20", "-O3", "-DNDEBUG", "-s"),
    *("-fexceptions", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-DEIGEN_DONT_PARALLELIZE"),
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
    run_to_the_end([sys.executable, "-m", "ziglang", "c++", *FLAGS, "-o", str(target), *map(str, sources)], cache)
    return target.read_bytes()


def run_to_the_end(command: list[str], environment: dict[str, str]) -> None:
    """Run a command; whatever ends this function ends all processes that the command has started, at once."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until there is a process that can be ended
    with subprocess.Popen(command, env=os.environ | environment, process_group=0) as process:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            while process.poll() is None:  # wait() would give the process a quarter of a second to see Ctrl-C itself
                time.sleep(0.02)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        sys.exit("the compiler failed; the page is as it was")


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


def compressed(data: bytes, piece: int = 2**16) -> bytes:
    """Return data as small as gzip makes them, piece by piece: no signal is answered before the end of a call."""
    whole = io.BytesIO()
    with gzip.GzipFile(fileobj=whole, mode="wb", mtime=0) as file:
        for begin in range(0, len(data), piece):
            file.write(data[begin : begin + piece])
    return whole.getvalue()


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
        "core": base64.b64encode(compressed(core)).decode(),
        "worker": bundled("worker"),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], (HERE / "page.html").read_text(encoding="utf-8"))


def stop(number: int, frame: FrameType | None) -> None:
    """End the build on a signal, with the shell's number for it."""
    print("\ninterrupted; the next build continues with what has been compiled", file=sys.stderr)
    gc.freeze()  # at its end Python would look through everything that was imported, for longer than all else takes
    sys.exit(128 + number)


def main() -> None:
    """Write the page."""
    text = page(compile_core())
    for package in {HERE.parent / "python" / "ocdl", Path(ocdl.__file__).parent}:
        replace_file(str(package / "playground.html"), text.encode())
    print(f"ocdl playground opens the page: {len(text.encode()) / 1e6:.2f} MB")


if __name__ == "__main__":
    for signal_number in SIGNALS:
        signal.signal(signal_number, stop)
    main()
