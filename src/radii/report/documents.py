"""The report as Markdown, as LaTeX tables, and as a PDF of figures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from radii._check import choice, epsilon
from radii.errors import InputError
from radii.report import tables
from radii.report.content import Content
from radii.report.page import Options, banner, write_page
from radii.report.pdf_pages import plates
from radii.report.reach_section import section_tables
from radii.report.stats_tables import view
from radii.report.tables import Table
from radii.stats._arrays import level

if TYPE_CHECKING:
    from radii.data import Dataset

ENDINGS = {".html": "html", ".md": "md", ".pdf": "pdf", ".tex": "latex-tables"}

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "ε": r"$\varepsilon$",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}

_MARKUP = {ord(sign): f"&#{ord(sign)};" for sign in "&\\`*_{}[]<>#|"}


def markdown(content: Content, options: Options | None = None) -> str:
    """The whole report as Markdown, alarms first."""
    chosen = options or Options()
    warning = banner(content)
    head = [f"# {escaped(content.title)}", f"> **{escaped(warning.headline)}**"]
    if warning.lines:
        head[-1] += "".join(f"\n> - {escaped(line)}" for line in warning.lines)
    parts = [markdown_table(table) for table in _tables(content, chosen)]
    return "\n\n".join([*head, *parts]) + "\n"


def markdown_table(table: Table) -> str:
    """One table as Markdown, with its title and note."""
    lines = [f"### {escaped(table.title)}", ""]
    if table.rows:
        lines += ["| " + " | ".join(map(escaped, table.headers)) + " |", "|" + " --- |" * len(table.headers)]
        lines += ["| " + " | ".join(escaped(text) for text in row) + " |" for row in table.texts]
    if table.note:
        lines += ["", escaped(table.note)]
    return "\n".join(lines)


def latex_tables(content: Content, options: Options | None = None) -> str:
    """Every table as a LaTeX table environment (booktabs); alarms stand at the top as a comment and a box."""
    chosen = options or Options()
    warning = banner(content)
    head = f"% needs \\usepackage{{booktabs}}\n\\noindent\\fbox{{\\parbox{{0.97\\linewidth}}{{{latex(warning.headline)}"
    head += "".join(f"\\\\ {latex(line)}" for line in warning.lines) + "}}\n"
    return "\n".join([head, *(_latex_table(table) for table in _tables(content, chosen) if table.rows)])


def latex(text: str) -> str:
    """Text that LaTeX sets as it stands."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def write_pdf(content: Content, path: str | Path, options: Options | None = None) -> Path:
    """Write a PDF: a page of facts, then one page per figure; a figure that the data do not allow is left out."""
    from matplotlib.backends.backend_pdf import PdfPages

    target = Path(path)
    try:
        with PdfPages(target) as pages, warnings.catch_warnings():
            # A name in a script that the font lacks is drawn as boxes; the tables have it in full.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            for figure in plates(content, options or Options()):
                pages.savefig(figure)
    except OSError as error:
        raise InputError(f"{target}: expected a file that can be written, got {error.strerror or error}") from None
    return target


def write(content: Content, path: str | Path, kind: str, options: Options | None = None) -> Path:
    """Write the report in one of the formats html, md, pdf and latex-tables, and give its path back."""
    if kind == "html":
        return write_page(content, path, options)
    if kind == "pdf":
        return write_pdf(content, path, options)
    text = (markdown if kind == "md" else latex_tables)(content, options)
    try:
        if kind == "md":
            text += _pictures(content, Path(path))
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: expected a file that can be written, got {error.strerror or error}") from None
    return Path(path)


def write_checked(
    path: str | Path,
    content: Callable[[], Content],
    *,
    eps: Any = None,
    confidence: float = 0.95,
    data: Dataset | Sequence[Dataset] = (),
) -> Path:
    """Write a report in the format of the file's ending; what is asked is checked before `content` is gathered."""
    level(confidence)
    target = Path(path)
    choice(target.suffix, "report file: ending", ENDINGS)
    sets = tuple(data) if isinstance(data, (list, tuple)) else (data,)
    options = Options(eps=None if eps is None else epsilon(eps), confidence=confidence, data=sets)
    return write(content(), target, ENDINGS[target.suffix], options)


def _pictures(content: Content, path: Path) -> str:
    """The figures of ensembles, written beside the report, as Markdown that shows them."""
    lines, pngs = [], [one for game in content.games for one in game.pngs]
    for place, (caption, data) in enumerate(pngs, start=1):
        file = path.with_name(f"{path.stem}-ensemble-{place}.png")
        file.write_bytes(data)
        lines.append(f"\n![{escaped(caption)}]({quote(file.name)})\n")
    return "".join(lines)


def _tables(content: Content, options: Options) -> list[Table]:
    reaches = section_tables(content, options.confidence)
    if content.empty:
        return [*([tables.identity(content)] if reaches else []), *reaches, tables.provenance(content)]
    eps = tables.default_eps(content) if options.eps is None else options.eps
    chosen = tables.all_tables(content, eps, options.confidence)
    chosen = [one for game in content.games for one in game.tables] + chosen
    return chosen + reaches + [one for name in options.views for one in view(name, content, eps, options.confidence)]


def _latex_table(table: Table) -> str:
    rows = [" & ".join(latex(text) for text in row) + r" \\" for row in table.texts]
    heads = " & ".join(latex(head) for head in table.headers) + r" \\"
    body = "\n".join([r"\toprule", heads, r"\midrule", *rows, r"\bottomrule"])
    columns = "l" + "r" * (len(table.headers) - 1)
    caption = latex(f"{table.title}. {table.note}".strip())
    return (
        f"\\begin{{table}}\n\\caption{{{caption}}}\n\\resizebox{{\\linewidth}}{{!}}{{%\n"
        f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}}}\n\\end{{table}}\n"
    )


def escaped(text: str) -> str:
    """Text without what Markdown or HTML would take for markup."""
    return text.translate(_MARKUP).replace("\n", " ")
