import tarfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Part, Unreadable
from chapterverse.ingestion.readers import read

_CORPUS = Path(__file__).parents[4] / "shared/data/corpora/ros2_docs/ros2_docs.tar.gz"


def _draft(text: str) -> Draft:
    (draft,) = read(Document("https://b.test/x", "x.rst", "book", "rst", text.encode(), "sphinx"))
    return draft


def _parts(text: str) -> list[tuple[str, str]]:
    return [(part.kind, part.text) for part in _draft(text).parts]


def test_sections_have_levels_and_the_anchors_of_sphinx() -> None:
    text = (
        ":orphan:\n\n.. _top-label:\n\nThe Page\n========\n\n.. _setup:\n\nSetup\n-----\n\na\n\n"
        "Using ``run``\n~~~~~~~~~~~~~\n\nb\n\n.. _again:\n\nSetup\n-----\n\nc\n\nSetup\n-----\n\nd\n"
    )
    assert [(part.text, part.level, part.anchor) for part in _draft(text).parts if part.kind == "heading"] == [
        ("The Page", 1, "the-page"),
        ("Setup", 2, "setup"),  # its label has the same name
        ("Using run", 3, "using-run"),
        ("Setup", 2, "again"),  # the title is taken, so Sphinx shows the label
        ("Setup", 2, "id3"),
    ]


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
            "Bold it `code` link the guide Write Nodes r node `Node` `a.b` easy `x` {DISTRO} the words",
        )
    ]


@pytest.mark.parametrize(
    ("directive", "label"),
    [
        (".. note:: Be careful.", "Note"),
        (".. warning::\n\n   Be *careful*.", "Warning"),
        (".. seealso:: Be careful.", "See also"),
        (".. versionadded:: 2.1 Be careful.", "New in version 2.1"),
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


def test_programs() -> None:
    parts = _draft(
        ".. code-block:: bash\n   :linenos:\n\n   ls\n\n     x\n\nLike this::\n\n   plain\n\n"
        ".. testcode:: group\n\n   y = 1\n"
    ).parts
    assert parts == (
        Part("code", "ls\n\n  x", language="bash"),
        Part("paragraph", "Like this:"),
        Part("code", "plain"),
        Part("code", "y = 1", language="python"),
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


def test_what_only_sphinx_could_fill_in_is_left_out() -> None:
    text = (
        "kept\n\n.. toctree::\n\n   a\n   b\n\n.. contents:: Contents\n   :local:\n\n"
        ".. autoclass:: a.B\n   :members:\n\n"
        ".. literalinclude:: /etc/hostname\n\n.. include:: /etc/hostname\n\n.. raw:: html\n\n   <b>secret</b>\n\n"
        ".. csv-table::\n   :file: /etc/hostname\n\n.. a comment\n   secret\n"
    )
    assert _parts(text) == [("paragraph", "kept")]


def test_lists_tables_pictures() -> None:
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
        ("list", "- API: The interface."),
        ("table", "| Name | Use |\n| --- | --- |\n| `a\\|b` | two words |"),
        ("table", "| x | y |\n| --- | --- |\n| 1 | 2 |"),
        ("table", "| c | d |\n| --- | --- |\n| 3 | 4 |"),
        ("paragraph", "A robot"),
        ("paragraph", "The caption."),
        ("paragraph", "An arm"),
    ]


def test_mistakes_in_the_markup_cost_only_themselves() -> None:
    assert ("paragraph", "after") in _parts("Title\n==\n\n*open\n\n.. note::\n\n:bad:`x\n\n=====\n\nafter\n")


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
    ],
)
def test_hostile_shapes_cost_little(text: str) -> None:
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
