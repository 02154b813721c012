# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of Sphinx for the site that `make docs` builds, without the network."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/llmfleet/sglang/blob/main"

project = "llmfleet.sglang"
project_copyright = "2026 the llmfleet engineers"
title = html_short_title = "llmfleet.sglang"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_antsibull_ext"]
myst_heading_anchors = 4
default_role = "any"
nitpicky = True

html_theme = "sphinx_ansible_theme"
html_use_smartypants = True
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"vcs_pageview_mode": "", "topbar_links": {}}


def lead_out(app: Any, docname: str, source: list[str]) -> None:
    """Let a guide's link to a file that is no page of the site (a role, an inventory) lead to the repository."""

    def target(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(docname), match[1]))
        if path.removesuffix(".md") in app.env.found_docs:
            return match[0]
        return f"]({REPOSITORY}/{path}{match[2] or ''})"

    if Path(app.env.doc2path(docname)).suffix == ".md":
        source[0] = re.sub(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)", target, source[0])


def lead_home(app: Any, _pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Let the theme's link to the beginning be relative to each page: the site may lie in any folder."""
    context["theme_documentation_home_url"] = context["pathto"](app.config.root_doc)


def setup(app: Any) -> None:
    """Register the hooks."""
    app.connect("html-page-context", lead_home)
    app.connect("source-read", lead_out)
