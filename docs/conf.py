"""How Sphinx makes the site: ``make docs`` writes it to ``docs/_build/html``."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

# Two processes build the site. Beside them more threads only wait for each other, above all those of two libraries.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import ocdl

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_extensions"))

import landing_pictures  # noqa: E402
import measured  # noqa: E402
from inventories import write_inventories  # noqa: E402

from ocdl.cli.playground import BUILT_PAGE  # noqa: E402

project, author, copyright = (
    "ocdl",
    "the ocdl developers",
    "the ocdl developers",
)
version = release = ocdl.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "command_line",
    "equations",
    "mathml",
    "measured",
    "names_in_docstrings",
    "paper_figures",
]
exclude_patterns = [
    "_build",
    "_extensions",
    "_static",
    "gallery/*.ipynb",
    "gallery/*.py",
]
nitpicky = True
templates_path = ["_templates"]

# ---- pages in Markdown; those with code cells are run, the three parts of a cell being source, text and pictures ----
myst_enable_extensions = [
    "colon_fence",
    "deflist",
    "dollarmath",
    "substitution",
]
myst_heading_anchors = 3
myst_substitutions = measured.numbers() | {"version": version}
nb_execution_mode = "force"
nb_execution_timeout = 180
nb_execution_raise_on_error = True
nb_merge_streams = True
PROFILE = HERE / "_build" / "ipython" / "profile_default"
PROFILE.mkdir(parents=True, exist_ok=True)
(PROFILE / "ipython_kernel_config.py").write_text(
    "c.IPKernelApp.log_level = 40  # errors only\n", encoding="utf-8"
)
os.environ["IPYTHONDIR"] = str(PROFILE.parent)

# ---- the reference: a page for every public name, from its docstring ----
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = (
    "none"  # the docstrings say what a parameter may be, in words
)
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
autodoc_mock_imports = [
    name for name in ("jax", "torch") if find_spec(name) is None
]
default_role = "name"  # `name` in a docstring is a link where it names something public
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
html_show_sourcelink = False
html_domain_indices = False

# ---- other projects' names: what we link to, from a file of our own, so that nothing is fetched ----
intersphinx_mapping = write_inventories(
    HERE / "inventories.toml", HERE / "_build" / "inventories"
)

# ---- the gallery: every example a page; those whose libraries are missing are shown and not run ----
EXTRAS = (
    "jax",
    "mpi4py",
    "onnxruntime",
    "optax",
    "skl2onnx",
    "torch",
    "torchdiffeq",
)


def runs_here(script: Path) -> bool:
    """Whether everything that a script imports is installed."""
    text = script.read_text(encoding="utf-8")
    return all(
        find_spec(name)
        for name in EXTRAS
        if f"import {name}" in text or f"from {name}" in text
    )


warnings.filterwarnings(
    "ignore", "A worker stopped"
)  # joblib begins a new one when torch or JAX made it large
RUNNABLE = "|".join(
    script.stem
    for script in sorted((ROOT / "examples").glob("*.py"))
    if runs_here(script)
)
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": rf"/({RUNNABLE})\.py$",
    "doc_module": ("ocdl",),
    "default_thumb_file": str(HERE / "_static" / "flow.png"),
    "download_all_examples": False,
    "min_reported_time": 1e6,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "nested_sections": False,
    "parallel": True,  # in processes of their own: Sphinx forks, which threads that JAX leaves behind do not survive
    "reference_url": {"ocdl": None},
    "within_subsection_order": "FileNameSortKey",
}

# ---- the playground: the page that `make playground` builds, under a name that no page of the site has ----
if BUILT_PAGE.is_file():
    tags.add("playground")  # type: ignore[name-defined]  # noqa: F821
    (HERE / "_build" / "extra").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(BUILT_PAGE, HERE / "_build" / "extra" / "play.html")
    html_extra_path = ["_build/extra"]

# ---- the two pictures of the start page ----
landing_pictures.write_pictures(HERE / "_build" / "pictures")

# ---- the look ----
html_theme = "pydata_sphinx_theme"
html_title = "ocdl"
html_logo = "_static/flow.svg"
html_favicon = "_static/flow.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": "ocdl", "alt_text": "ocdl, the start page"},
    "show_toc_level": 2,
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
WITHOUT_CHILDREN = (
    "cite",
    "changelog",
    "coming_from",
    "command_line",
    "dynamics_elsewhere",
    "exercises",
    "extending",
    "faq",
    "getting_started",
    "glossary",
    "index",
    "playground",
)
html_sidebars = {page: [] for page in WITHOUT_CHILDREN}
