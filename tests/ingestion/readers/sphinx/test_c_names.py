"""Anchors of C and C++ objects. The expected values were written by Sphinx 9.0."""

from dataclasses import replace
from pathlib import Path

import pytest

from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Tree
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.readers.sphinx.c_names import described
from chapterverse.ingestion.readers.sphinx.project import read_project


@pytest.mark.parametrize(
    ("signature", "scope", "anchor"),
    [
        ("MyClass : public MyBase", "", "_CPPv47MyClass"),
        ("OuterScope::MyClass", "", "_CPPv4N10OuterScope7MyClassE"),
        ("std::string MyClass::myOtherMember[N][M]", "", "_CPPv4N7MyClass13myOtherMemberE"),
        ("int a = 42", "", "_CPPv41a"),
        ("double b", "Data::@data", "_CPPv4N4DataUt4_data1bE"),
        ("MyEnum::myOtherEnumerator = 42", "", "_CPPv4N6MyEnum17myOtherEnumeratorE"),
        ("std::vector<int> MyList", "", "_CPPv46MyList"),
        ("bool myMethod(int arg1, std::string arg2)", "", "_CPPv48myMethodiNSt6stringE"),
        ("void f(double d = 1.0) const", "overload_example::C", "_CPPv4NK16overload_example1C1fEd"),
        ("MyClass::MyClass(const MyClass&) = default", "", "_CPPv4N7MyClass7MyClassERK7MyClass"),
        ("void f()", "", "_CPPv41fv"),
        ("void g(unsigned long *p, T &&t)", "", "_CPPv41gPmRR1T"),
        ("template<typename T, std::size_t N> std::array", "", "_CPPv4I0_NSt6size_tEENSt5arrayE"),
        ("void k(const char *const s, std::vector<int> v, char **a)", "", "_CPPv41kPCKcNSt6vectorIiEEPPc"),
        ("template<> template<> Outer<int>::Inner<bool>", "", "_CPPv4IEN5OuterIiE5InnerIbEE"),
        ("std::Iterator{It} void advance(It &it)", "", ""),
        ("const T &MyClass::operator[](std::size_t i) const", "", ""),
    ],
)
def test_anchors_of_cpp(signature: str, scope: str, anchor: str) -> None:
    assert described("cpp", signature, scope)[1] == anchor


def test_c_and_cpp_roles_link_to_their_objects(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text("")
    (tmp_path / "index.rst").write_text(
        "T\n=\n\n.. c:struct:: Data\n\n   .. c:union:: @data\n\n      .. c:var:: int a\n\n"
        ".. c:function:: int f(int i)\n\n   Words.\n\n"
        ".. cpp:namespace:: ns\n\n.. cpp:class:: template<typename T> \\\n               Box\n\n"
        "   .. cpp:function:: int size(int i) const\n\n      Words.\n\n"
        "See :c:var:`Data.@data.a`, :c:var:`Data.a`, :c:expr:`f(3) * Data`, :cpp:func:`ns::Box::size`, "
        ":cpp:class:`Box`.\n"
    )
    read_project.cache_clear()
    project, tree = read_project(str(tmp_path)), Tree(str(tmp_path), generator="sphinx")
    document = Document("u", "index.rst", "b", "rst", (tmp_path / "index.rst").read_bytes(), "sphinx", tree=tree)
    document = replace(document, references=project.context(document)[0])
    page = compose(document, read(document)[0])
    links = [(page.text[mark.start : mark.end], mark.target.partition("#")[2]) for mark in page.marks]
    assert links == [
        ("`Data.[anonymous].a`", "c.Data.@data.a"),
        ("`Data.a`", "c.Data.@data.a"),
        ("f", "c.f"),
        ("Data", "c.Data"),
        ("`ns::Box::size()`", "_CPPv4NK2ns3Box4sizeEi"),
        ("`Box`", "_CPPv4I0EN2ns3BoxE"),
    ]
