"""The configuration of Sphinx for the site, which `build` gives the folder that it has prepared.

Pages are Markdown (MyST); the reference is reStructuredText that `reference` has written from
docstrings. Addresses of other sites come from files (`inventories`): nothing is downloaded.
"""

import json
import os

import wengert

project = "wengert"
author = "The wengert authors"
copyright = "The wengert authors, Apache-2.0"
version = release = wengert.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
root_doc = "index"
exclude_patterns = ["README.md"]
default_role = "code"
python_use_unqualified_type_names = True
toc_object_entries = False
maximum_signature_line_length = 88
highlight_language = "text"
suppress_warnings = ["myst.header", "config.cache", "misc.highlighting_failure"]
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

intersphinx_mapping = {k: tuple(v) for k, v in json.loads(os.environ["SITE_INVENTORIES"]).items()}

html_theme = "furo"
html_title = f"wengert {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["coverage.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
