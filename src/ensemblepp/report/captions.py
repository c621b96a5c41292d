"""Captions: reStructuredText with the fields that Snakemake fills in, to HTML that holds text and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from jinja2 import ChainableUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from ensemblepp.errors import ResultError

#: What Snakemake knows and this page does not, such as wildcards, is left empty.
_TEMPLATES = SandboxedEnvironment(undefined=ChainableUndefined)

#: No file, no raw HTML and no configuration of the machine's comes in; what docutils finds wrong is not shown.
_SETTINGS = {
    "raw_enabled": False,
    "file_insertion_enabled": False,
    "_disable_config": True,
    "report_level": 5,
    "halt_level": 5,
    "doctitle_xform": False,
}


def html(caption: str, params: Mapping[str, Any]) -> Markup:
    """A caption as HTML without links and images.

    Args:
        caption: a path that ends in .rst, whose fields read `snakemake.params`, or a text that is taken as it is.
        params: what stands there.

    Raises:
        ResultError: the file cannot be read or filled in.
    """
    if not caption.endswith(".rst"):
        return Markup("<p>{}</p>").format(caption)
    try:
        template = _TEMPLATES.from_string(Path(caption).read_text("utf-8"))
        text = template.render(snakemake={"params": params})
    except (OSError, UnicodeDecodeError, TemplateError) as error:
        raise ResultError(f"{caption}: not a caption ({error}); see workflow/report for examples") from error
    tree = publish_doctree(text, settings_overrides=_SETTINGS)
    for node in list(
        tree.findall(lambda node: isinstance(node, nodes.image | nodes.raw | nodes.system_message | nodes.target))
    ):
        node.parent.remove(node)
    for node in list(tree.findall(lambda node: isinstance(node, nodes.reference | nodes.problematic))):
        node.parent.replace(node, nodes.Text(node.astext()))
    # a class attribute may name what the page's script and style look for
    for node in tree.findall(nodes.Element):
        node["classes"], node["ids"], node["names"] = [], [], []
    whole = publish_from_doctree(
        tree, writer="html5", settings_overrides=_SETTINGS | {"output_encoding": "unicode", "embed_stylesheet": False}
    )
    return Markup(whole[whole.index("<main") : whole.index("</main>")].partition(">")[2].strip())
