import tarfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Part, Reference, Tree, Unreadable
from chapterverse.ingestion.inline import extract, picture, plain
from chapterverse.ingestion.readers import read

_CORPUS = Path(__file__).parents[4] / "shared/data/corpora/ros2_docs/ros2_docs.tar.gz"


def _draft(text: str) -> Draft:
    (draft,) = read(Document("https://b.test/x", "x.rst", "book", "rst", text.encode(), "sphinx"))
    return draft


def _parts(text: str) -> list[tuple[str, str]]:
    return [(part.kind, plain(part.text)) for part in _draft(text).parts]


def _marks(text: str, document: Document) -> list[tuple[str, str, str]]:
    """Kind, text and target of every mark."""
    found: list[tuple[str, str, str]] = []
    for part in read(replace(document, data=text.encode()))[0].parts:
        said, marks = extract(part.text)
        found += [(mark.kind, said[mark.start : mark.end], mark.target) for mark in marks]
    return found


def _in_folder(root: Path, path: str, text: str, **more: Any) -> tuple[Part, ...]:
    tree = Tree(str(root), generator="sphinx")
    return read(Document("u", path, "book", "rst", text.encode(), "sphinx", tree=tree, **more))[0].parts


def test_sections_have_levels_and_the_anchors_of_sphinx() -> None:
    text = (
        ":orphan:\n\n.. _top-label:\n\nThe Page\n========\n\n.. _setup:\n\nSetup\n-----\n\na\n\n"
        "Using ``run``\n~~~~~~~~~~~~~\n\nb\n\n.. _again:\n\nSetup\n-----\n\nc\n\nSetup\n-----\n\nd\n"
    )
    assert [(part.text, part.level, part.anchor) for part in _draft(text).parts if part.kind == "heading"] == [
        ("The Page", 1, "the-page"),
        ("Setup", 2, "setup"),  # the label has the same name
        ("Using run", 3, "using-run"),
        ("Setup", 2, "again"),  # the anchor of the title is taken, so Sphinx uses the label
        ("Setup", 2, "id3"),
    ]


def test_formulas_and_escaped_spaces() -> None:
    text = "H\\ :sub:`2`\\ O, :math:`n` and :math:`x_1`.\n\n.. math::\n   :label: sum\n\n   a + b\n"
    assert _parts(text) == [("paragraph", "H2O, $n$ and $x_1$."), ("paragraph", "$$a + b$$")]
    marks = _marks(text, Document("https://b.test/x", "x.rst", "book", "rst", b""))
    assert marks == [("sub", "2", ""), ("math", "$n$", ""), ("math", "$x_1$", ""), ("math", "$$a + b$$", "")]


def test_directive_with_an_unknown_option_is_read() -> None:
    text = ".. image:: a.png\n   :alt: An arm\n   :loading: lazy\n\n.. topic:: Words\n   :icon: star\n\n   Inside.\n"
    assert _parts(text) == [("image", "An arm"), ("paragraph", "Words"), ("paragraph", "Inside.")]


def test_raw_html_in_a_substitution_is_text_of_the_sentence() -> None:
    text = (
        ".. |br| raw:: html\n\n   <br>\n\n.. |new| raw:: html\n\n   <b>NEW</b>\n\n.. |tex| raw:: latex\n\n   x\n\n"
        "An option |new| here, one |br| two |tex|.\n"
    )
    assert _parts(text) == [("paragraph", "An option NEW here, one two .")]


def test_rules_are_removed_from_cards_only() -> None:
    text = (
        ".. dropdown:: Error\n\n   Cause\n   ^^^^^\n\n   .. code-block:: text\n\n      print(foo\n           ^^^^\n\n"
        ".. card:: Title\n\n   Head\n   ^^^^\n   Body::\n\n     ^^^\n\n   +++\n   Foot\n"
    )
    assert _parts(text)[1:] == [
        ("heading", "Cause"),
        ("code", "print(foo\n     ^^^^"),
        ("paragraph", "Title:"),
        ("paragraph", "Head"),
        ("paragraph", "Body:"),
        ("code", "^^^"),
        ("paragraph", "Foot"),
    ]


@pytest.mark.parametrize(
    ("role", "shown"), [("math", "$\\alpha$"), ("samp", "`alpha`"), ("unknown", "alpha"), ("", "alpha")]
)
def test_default_role_may_be_any_role(tmp_path: Path, role: str, shown: str) -> None:
    (part,) = _in_folder(tmp_path, "a.rst", "Let `\\alpha` be.\n", settings={"default_role": role})
    assert plain(part.text) == f"Let {shown} be."


def test_escaped_angle_bracket_begins_no_target() -> None:
    text = ":cpp:class:`std::vector\\<int>` :class:`a \\<b>` :class:`it <c>`\n"
    assert _parts(text) == [("paragraph", "`std::vector<int>` `a <b>` `it`")]


def test_substitutions_of_sphinx_and_the_prolog(tmp_path: Path) -> None:
    settings = {"version": "1.2", "release": "1.2.3", "project": "Foo", "rst_prolog": "**Draft**"}
    text = "T\n=\n\nThis is |version| of |project| now.\n\n.. |project| replace:: Bar\n"
    parts = _in_folder(tmp_path, "a.rst", text, settings=settings)
    assert [(part.kind, plain(part.text)) for part in parts] == [
        ("paragraph", "Draft"),
        ("heading", "T"),
        ("paragraph", "This is 1.2 of Bar now."),
    ]


def test_rubrics_attributions_grammars_and_captions() -> None:
    text = (
        ".. rubric:: Notes\n\n.. epigraph::\n\n   Said so.\n\n   -- Someone\n\n"
        ".. productionlist:: python\n   try: a b\n      : c\n\n.. csv-table:: The *sizes*\n   :header: a\n\n   1\n\n"
        ".. admonition:: Mind this!\n   :class: warning\n\n   Hot.\n"
    )
    parts = _draft(text).parts
    assert [(part.kind, plain(part.text), plain(part.caption)) for part in parts] == [
        ("paragraph", "Notes", ""),
        ("quote", "Said so.\n\n— Someone", ""),
        ("code", "try: a b\n   : c", ""),
        ("table", "| a |\n| --- |\n| 1 |", "The sizes"),
        ("admonition", "Mind this! Hot.", "Mind this!"),
    ]
    assert parts[-1].info == "warning"
    assert extract(parts[0].text)[1][0].kind == "strong"


def test_inline_markup_and_roles() -> None:
    text = (
        "**Bold** *it* ``code`` `link <http://x>`_ :doc:`the guide <a/b>` :doc:`/How-To/Write-Nodes` :ref:`r <s>` "
        ":term:`node` :class:`~rclpy.node.Node` :py:meth:`a.b <c>` :bdg-success:`easy` :code:`x` {DISTRO} "
        "[1]_ |sub|\n\n"
        ".. |sub| replace:: *the words*\n"
    )
    assert _parts(text) == [
        (
            "paragraph",
            "Bold it `code` link the guide Write Nodes r node `Node` `a.b` easy `x` {DISTRO} [1] the words",
        )
    ]


@pytest.mark.parametrize(
    ("directive", "label"),
    [
        (".. note:: Be careful.", "Note"),
        (".. warning::\n\n   Be *careful*.", "Warning"),
        (".. seealso:: Be careful.", "See also"),
        (".. versionadded:: 2.1 Be careful.", "Added in version 2.1"),
        (".. deprecated:: 3.0\n   Be careful.", "Deprecated since version 3.0"),
        (".. admonition:: My title\n\n   Be careful.", "My title"),
    ],
)
def test_admonitions(directive: str, label: str) -> None:
    assert _parts(f"before\n\n{directive}\n\nafter") == [
        ("paragraph", "before"),
        ("admonition", f"{label}: Be careful."),
        ("paragraph", "after"),
    ]


def test_code_blocks() -> None:
    parts = _draft(
        ".. code-block:: bash\n   :linenos:\n\n   ls\n\n     x\n\nLike this::\n\n   plain\n\n"
        ".. testcode:: group\n\n   y = 1\n"
    ).parts
    assert parts == (
        Part("code", "ls\n\n  x", info="bash"),
        Part("paragraph", "Like this:"),
        Part("code", "plain"),
        Part("code", "y = 1", info="python"),
    )


def test_tabs_dropdowns_and_unknown_directives_keep_their_text() -> None:
    text = """
.. tabs::

   .. group-tab:: Linux

      Use *apt*.

      .. code-block:: sh

         apt

   .. code-tab:: python My code

      x = 1

.. dropdown:: **More**
   :animate: fade-in

   Inside.

.. something-new:: arg
   :what: ever

   Kept :odd-role:`too`.

.. only:: html

   Also kept.

.. rubric:: A rubric
"""
    assert _parts(text) == [
        ("paragraph", "Linux:"),
        ("paragraph", "Use apt."),
        ("code", "apt"),
        ("paragraph", "My code:"),
        ("code", "x = 1"),
        ("paragraph", "More:"),
        ("paragraph", "Inside."),
        ("paragraph", "Kept too."),
        ("paragraph", "Also kept."),
        ("paragraph", "A rubric"),
    ]


def test_unknown_directives_keep_arguments_that_are_prose() -> None:
    text = (
        ".. availability:: Unix, Windows.\n\n.. my-note:: Text on the *first* line\n   and the second.\n\n   More.\n\n"
        ".. margin:: A title\n\n   Beside.\n\n.. grid:: 1 2 3\n\n   Cells.\n\n.. rst-class:: wide dark\n\n"
        ".. tutorial:: ./src/a.cpp\n\n.. call:: open path,mode io.open\n"
    )
    said = ["Unix, Windows.", "Text on the first line and the second.", "More.", "A title", "Beside.", "Cells."]
    assert _parts(text) == [("paragraph", one) for one in said]


def test_unknown_directives_for_objects_describe_them() -> None:
    text = (
        ".. currentmodule:: dis\n\n.. opcode:: NOP\n\n   Does nothing.\n\n.. opcode:: COPY (i)\n\n   Copies.\n\n"
        ".. coroutinefunction:: sleep(delay)\n\n   Waits.\n"
    )
    fields = ["`NOP`\nDoes nothing.", "`COPY (i)`\nCopies.", "`dis.sleep(delay)`\nWaits."]
    assert _parts(text) == [("field", one) for one in fields]
    assert _parts(".. opcode:: NOP\n\n   Of another page.\n") == [("paragraph", "Of another page.")]


def test_directives_that_need_sphinx_or_other_files_are_left_out() -> None:
    text = (
        "kept\n\n.. toctree::\n\n   a\n   b\n\n.. contents:: Contents\n   :local:\n\n"
        ".. autoclass:: a.B\n   :members:\n\n"
        ".. literalinclude:: /etc/hostname\n\n.. include:: /etc/hostname\n\n.. raw:: latex\n\n   secret\n\n"
        ".. csv-table::\n   :file: /etc/hostname\n\n.. a comment\n   secret\n"
    )
    assert _parts(text) == [("paragraph", "kept")]


def test_raw_html_is_read_without_hidden_text() -> None:
    text = ".. raw:: html\n\n   <p>Seen <b>too</b>.</p><script>no</script><p style='display:none'>hidden</p>\n"
    assert _parts(text) == [("paragraph", "Seen too.")]
    assert _parts("a\n\n.. raw:: html\n   :file: /etc/hostname\n") == [("paragraph", "a")]


def test_roles_for_files_and_commands_keep_their_text_as_it_is() -> None:
    text = (
        ":file:`~/.bashrc` :file:`.env` :file:`./a.{name}/b` :program:`!bang` :command:`~x.y` :samp:`clone <{url}>` "
        ":kbd:`.` :guilabel:`&Save as` :menuselection:`File --> Open` :class:`~a.B`\n"
    )
    said = "`~/.bashrc` `.env` `./a.name/b` `!bang` `~x.y` `clone <url>` `.` `Save as` `File ‣ Open` `B`"
    assert _parts(text) == [("paragraph", said)]


def test_raw_roles_keep_html_and_drop_latex() -> None:
    text = (
        ".. role:: page(raw)\n   :format: html\n\n.. role:: print(raw)\n   :format: latex\n\n"
        "A :page:`<b class='x'>B &amp; C</b>` :print:`no`.\n"
    )
    assert _parts(text) == [("paragraph", "A B & C .")]


def test_doctest_flags_are_removed() -> None:
    assert _parts(">>> f()  # doctest: +SKIP\n<BLANKLINE>\n1\n") == [("code", ">>> f()\n\n1")]


def test_lists_tables_and_images() -> None:
    text = """
* one

  * inner
* two::

    code

#. first
#. second

API
   The interface.

.. list-table::
   :header-rows: 1

   * - Name
     - Use
   * - ``a|b``
     - two *words*

=====  =====
x      y
=====  =====
1      2
=====  =====

.. csv-table::
   :header: "c", "d"

   "3", "4"

.. figure:: x.png
   :alt: A robot

   The caption.

.. image:: y.png
   :alt: An arm
"""
    assert _parts(text) == [
        ("list", "- one\n  - inner\n- two:"),
        ("code", "code"),
        ("list", "1. first\n2. second"),
        ("field", "`API`\nThe interface."),
        ("table", "| Name | Use |\n| --- | --- |\n| `a\\|b` | two words |"),
        ("table", "| x | y |\n| --- | --- |\n| 1 | 2 |"),
        ("table", "| c | d |\n| --- | --- |\n| 3 | 4 |"),
        ("image", "A robot"),
        ("image", "An arm"),
    ]
    figure, image = _draft(text).parts[-2:]
    assert (figure.info, figure.caption) == ("x.png", "The caption.")
    assert (image.info, image.caption) == ("y.png", "")


def test_parameters_are_fields() -> None:
    text = """
The parameters:

:rate:

  ====== =======
  Type   Default
  ------ -------
  double 20.0
  ====== =======

  Description
    How often it runs.

  Note
    Not too often.

.. confval:: html_theme
   :type: ``str``
   :default: ``'alabaster'``

   .. versionadded:: 0.6

   The theme of the site.

   .. code-block:: python

      html_theme = "basic"

.. option:: -v, --verbose

   Says more.

-q, --quiet  Says less.

.. envvar:: HOME

   Where you live.
"""
    assert _parts(text) == [
        ("paragraph", "The parameters:"),
        (
            "field",
            "`rate`\nType: double\nDefault: 20.0\nDescription: How often it runs.\nNote: Not too often.",
        ),
        (
            "field",
            "`html_theme`\nType: `str`\nDefault: `'alabaster'`\nAdded in version 0.6.\nThe theme of the site.",
        ),
        ("code", 'html_theme = "basic"'),
        ("field", "`-v`, `--verbose`\nSays more."),
        ("field", "`-q`, `--quiet`\nSays less."),
        ("field", "`HOME`\nWhere you live."),
    ]


def test_function_field_has_parameters_returns_and_raises() -> None:
    text = """
.. py:currentmodule:: ray

.. py:function:: init(address, num_cpus=None)

   Connects.

   :param str address: Where to.
   :param num_cpus: How many.
   :type num_cpus: int
   :returns: Nothing.
   :raises ValueError: when wrong

.. py:class:: Actor

   .. py:method:: run()
      :async:

      Runs.
"""
    assert _parts(text) == [
        (
            "field",
            "`ray.init(address, num_cpus=None)`\nConnects.\nParameters:\n- `address` (str) – Where to.\n"
            "- `num_cpus` (int) – How many.\nReturns: Nothing.\nRaises:\n- `ValueError` – when wrong",
        ),
        ("field", "`class ray.Actor`"),
        ("field", "`async run()`\nRuns."),
    ]


def test_exceptions_with_and_without_a_name() -> None:
    text = (
        ".. function:: f(x)\n\n   Does.\n\n   :raises: an error\n   :raises ValueError: if bad\n\n"
        ".. function:: g(x)\n\n   Does.\n\n   :raises ValueError: if bad\n   :raises: an error\n"
    )
    assert [told for _, told in _parts(text)] == [
        f"`{name}(x)`\nDoes.\nRaises: an error\nRaises:\n- `ValueError` – if bad" for name in "fg"
    ]


def test_class_directive_outside_a_sphinx_project() -> None:
    text = ".. class:: Robot(name)\n\n   Moves.\n\n.. class:: wide-text\n\nPlain words.\n"
    assert _parts(text) == [("field", "`class Robot(name)`\nMoves."), ("paragraph", "Plain words.")]


def test_long_term_is_a_paragraph() -> None:
    text = f"{'A sentence that somebody continued on the next line with an indent, ' * 2}\n   so.\n"
    assert [part.kind for part in _draft(text).parts] == ["paragraph", "paragraph"]


def test_tables_with_spans_and_without_header() -> None:
    text = """
+-----+-----+
| a   | b   |
+=====+=====+
| x   | 1   |
|     +-----+
|     | 2   |
+-----+-----+
| wide      |
+-----+-----+

== ==
1  2
3  4
== ==
"""
    assert _parts(text) == [
        ("table", "| a | b |\n| --- | --- |\n| x | 1 |\n| x | 2 |\n| wide | wide |"),
        ("table", "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"),
    ]


def test_marks_and_links(tmp_path: Path) -> None:
    known = {
        "label:install": Reference("guide/install.rst", "installing", "Installing it"),
        "doc:guide/install": Reference("guide/install.rst", "", "Installation"),
        "confval:html_theme": Reference("conf.rst", "confval-html_theme"),
        "term:node": Reference("glossary.rst", "term-node"),
    }
    settings = {"extlinks.issue": "https://x.test/%s\n#%s", "rst_epilog": ".. |name| replace:: The Name"}
    document = Document(
        "u", "guide/page.rst", "book", "rst", b"", "sphinx", tree=Tree(str(tmp_path), generator="sphinx"),
        references=known, settings=settings,
    )  # fmt: skip
    text = (
        "*it* **bold** H\\ :sub:`2`\\ O `site <https://a.test/x%20y>`_ :ref:`install` :ref:`here <install>` "
        ":doc:`install` :doc:`/guide/install` :confval:`html_theme` :term:`node` :issue:`12` Below_ [1]_ |name|\n\n"
        ".. image:: img/a.png\n   :alt: no answer\n\nBelow\n-----\n\n.. [1] A note.\n"
    )
    assert _marks(text, document) == [
        ("emphasis", "it", ""),
        ("strong", "bold", ""),
        ("sub", "2", ""),
        ("link", "site", "https://a.test/x%20y"),
        ("link", "Installing it", "path:guide/install.rst#installing"),
        ("link", "here", "path:guide/install.rst#installing"),
        ("link", "Installation", "path:guide/install.rst"),
        ("link", "Installation", "path:guide/install.rst"),
        ("link", "`html_theme`", "path:conf.rst#confval-html_theme"),
        ("link", "node", "path:glossary.rst#term-node"),
        ("link", "#12", "https://x.test/12"),
        ("link", "Below", "#below"),
        ("footnote", "[1]", "1"),
    ]
    parts = read(replace(document, data=text.encode()))[0].parts
    assert plain(parts[0].text).endswith("[1] The Name")
    assert (parts[1].kind, parts[1].text, parts[1].info) == ("image", "no answer", "path:guide/img/a.png")
    assert parts[-1].text == "[1] A note."


def test_inline_image_is_a_mark() -> None:
    (part,) = _draft("Press |key| now.\n\n.. |key| image:: k.png\n   :alt: the key\n").parts
    assert part.text == f"Press {picture('k.png', 'the key')} now."


def test_files_are_included_from_inside_the_folder_only(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "book/part.txt").write_text("Part\n----\n\n|x| said\n\n.. |x| replace:: it is\n")
    (tmp_path / "book/loop.txt").write_text("again\n\n.. include:: loop.txt\n\n.. include:: page.rst\n")
    (tmp_path / "book/rows.csv").write_text('a,"b, c"\n1,2\n')
    (tmp_path / "book/link.txt").symlink_to(tmp_path / "secret.txt")
    text = (
        "Page\n====\n\n.. include:: part.txt\n\n.. include:: loop.txt\n\n.. include:: ../secret.txt\n\n"
        ".. include:: /etc/hostname\n\n.. include:: link.txt\n\n.. literalinclude:: ../secret.txt\n\n"
        ".. csv-table::\n   :file: ../secret.txt\n\n.. csv-table::\n   :file: rows.csv\n   :header-rows: 1\n\n"
        ".. csv-table::\n   :url: https://a.test/x\n"
    )
    assert [(part.kind, part.text) for part in _in_folder(tmp_path / "book", "page.rst", text)] == [
        ("heading", "Page"),
        ("heading", "Part"),
        ("paragraph", "it is said"),
        ("paragraph", "again"),
        ("table", "| a | b, c |\n| --- | --- |\n| 1 | 2 |"),
    ]


def test_directives_of_a_page_stay_as_they_are_in_its_includes(tmp_path: Path) -> None:
    (tmp_path / "part.txt").write_text(".. hook:: compact\n\n   Included.\n")
    text = ".. include:: part.txt\n\n.. hook:: run(a, b)\n\n   Runs.\n"
    shown = [part.text for part in _in_folder(tmp_path, "page.rst", text)]
    assert shown == ["`compact`\nIncluded.", "`run(a, b)`\nRuns."]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("", "# one\ndef f():\n    x = 1\n    return x\n\nclass C:\n    def g(self):\n        pass"),
        (":lines: 1-2,4", "# one\ndef f():\n    return x"),
        (f":lines: ²,1,{'9' * 4_400},-,²-2", "# one"),
        (":lines: 7-", "    def g(self):\n        pass"),
        (":start-after: def f\n   :end-before: class\n   :dedent:", "x = 1\nreturn x"),
        (":start-at: def f\n   :end-at: return\n   :dedent: 2", "def f():\n  x = 1\n  return x"),
        (":pyobject: C.g\n   :dedent: 4", "def g(self):\n    pass"),
        (":lines: 2\n   :prepend: a\n   :append: b", "a\ndef f():\nb"),
    ],
)
def test_literalinclude_options_select_lines(tmp_path: Path, options: str, code: str) -> None:
    (tmp_path / "code.py").write_text(
        "# one\ndef f():\n    x = 1\n    return x\n\nclass C:\n    def g(self):\n        pass\n"
    )
    text = f".. literalinclude:: code.py\n   :language: python\n   :caption:\n   {options}\n"
    assert _in_folder(tmp_path, "page.rst", text) == (Part("code", code, info="python", caption="code.py"),)


def test_large_table_that_does_not_exist_is_left_out(tmp_path: Path) -> None:
    text = f"kept\n\n.. chapterverse-large-table:: {'9' * 4_400}\n"
    assert [part.text for part in _in_folder(tmp_path, "page.rst", text)] == ["kept"]


def test_literalinclude_without_its_start_or_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x\n")
    text = "kept\n\n.. literalinclude:: code.py\n   :start-after: nowhere\n\n.. literalinclude:: none.py\n"
    assert [part.text for part in _in_folder(tmp_path, "page.rst", text)] == ["kept"]


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("html", True), ("latex", False), ("not latex", True), ("html and not draft", True), ("html and latex", False),
        ("latex or (html and not x)", True), ("(", True), ("", True),
    ],
)  # fmt: skip
def test_only_shows_text_for_html(expression: str, shown: bool) -> None:
    assert _parts(f"a\n\n.. only:: {expression}\n\n   b\n") == [("paragraph", "a"), *[("paragraph", "b")] * shown]


def test_glossary_topics_and_admonitions() -> None:
    text = (
        ".. glossary::\n\n   node\n   nodes\n      A process.\n\n   topic\n      A name.\n\n"
        ".. topic:: Aside\n\n   Words.\n\n.. deprecated:: 2.0\n\n.. caution::\n\n   Hot::\n\n      code\n\n   More.\n"
    )
    assert _parts(text) == [
        ("field", "`node`, `nodes`\nA process."),
        ("field", "`topic`\nA name."),
        ("paragraph", "Aside"),
        ("paragraph", "Words."),
        ("paragraph", "Deprecated since version 2.0."),
        ("admonition", "Caution: Hot:"),
        ("code", "code"),
        ("paragraph", "More."),
    ]
    assert [part.info for part in _draft(text).parts if part.kind == "admonition"] == ["caution"]


def test_parsed_literals_and_highlight_language() -> None:
    text = ".. highlight:: yaml\n\n.. parsed-literal::\n\n   a *b* |v|\n\n::\n\n   c\n\n.. |v| replace:: 1\n"
    assert _draft(text).parts == (Part("code", "a b 1"), Part("code", "c", info="yaml"))


@pytest.mark.parametrize("base", ["code", "ref", "func", "any", "rfc", "abbr", "octicon", "emphasis"])
def test_custom_roles_keep_their_text(base: str) -> None:
    assert _parts(f".. role:: own({base})\n\nA :own:`1`.\n") in ([("paragraph", f"A {said}.")] for said in _SHOWN)


_SHOWN = ("`1`", "1", "RFC 1", "")


def test_failure_of_docutils_is_unreadable_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("odd")

    monkeypatch.setattr("docutils.parsers.rst.Parser.parse", fail)
    with pytest.raises(Unreadable, match=r"cannot be parsed as reStructuredText \(KeyError: 'odd'\)"):
        _draft("x")


def test_text_after_invalid_markup_is_read() -> None:
    assert ("paragraph", "after") in _parts("Title\n==\n\n*open\n\n.. note::\n\n:bad:`x\n\n=====\n\nafter\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "*a " * 5_000,
        "word " * 200_000,
        ".. _a:\n\n" * 2_000 + "x",
        "\n\n".join("  " * depth + "x" for depth in range(1_200)),
        "\n\n".join("   " * depth + ".. note::" for depth in range(300)),
        "Same\n====\n\nx\n\n" * 2_000,
        ":a" * 9_000,
        "`a" * 9_000,
        "|a" * 9_000,
        ":f:\n\n  " * 3_000,
        ".. list-table::\n\n" + "   * - a\n     - b\n" * 2_000,
        "== ==\n" + "a  b\n" * 20_000 + "== ==\n",
        ".. glossary::\n\n" + "   a\n      b\n" * 3_000,
        ".. py:function:: f(" + "[" * 5_000 + "\n",
    ],
)
def test_hostile_text_is_read_in_bounded_time(text: str) -> None:
    start = time.process_time()
    with suppress(NothingToRead, Unreadable):
        _draft(text)
    assert time.process_time() - start < 5


@pytest.mark.slow
@pytest.mark.skipif(not _CORPUS.exists(), reason="the shared corpora are not here")
def test_every_page_of_the_ros_2_documentation_is_read() -> None:
    read_pages = 0
    with tarfile.open(_CORPUS) as archive:
        for member in archive:
            if member.name.endswith(".rst") and (file := archive.extractfile(member)):
                try:
                    read(Document("https://b.test/x", member.name, "ros", "rst", file.read(), "sphinx"))
                    read_pages += 1
                except NothingToRead:  # only a table of contents
                    pass
    assert read_pages > 260


def test_version_directives_with_both_spellings() -> None:
    text = ".. version-changed:: 9.0\n   It was *renamed*.\n\n.. versionadded:: 1.2 At last.\n"
    assert _parts(text) == [
        ("admonition", "Changed in version 9.0: It was renamed."),
        ("admonition", "Added in version 1.2: At last."),
    ]
