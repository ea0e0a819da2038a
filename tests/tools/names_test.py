# SPDX-License-Identifier: Apache-2.0
"""check_names must find what a unity build of any two files of a folder would find."""

import check_names

FILE = """\
#include "a.h"
namespace ingot::core {
namespace {

%s

}  // namespace
}  // namespace ingot::core
"""


def problems(root, **files):
    (root / "CMakeLists.txt").write_text(
        "  ingot_folder(ops LIBRARY compiler)\ningot_folder(ir LIBRARY compiler)\n"
    )
    for name, text in files.items():
        folder, _, rest = name.partition("_")
        path = root / "src" / folder / rest.replace("_h", ".h").replace("_cpp", ".cpp")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILE % text if path.suffix == ".cpp" else text)
    return [text.removeprefix("src/") for text in check_names.check(root)]


def both(root, text, other=None):
    return problems(root, ops_a_cpp=text, ops_b_cpp=other or text)


def test_constants_types_and_functions_clash(tmp_path):
    for text, name in [
        ("constexpr int kLimit = 4;", "kLimit"),
        ("constexpr Operand kOperands[] = {{1}};", "kOperands"),
        ("constexpr int kFew = 4, kLimit = count(1, 2);  // and more", "kLimit"),
        ("constexpr double kFew = 1e-3,   // of one\n    kLimit = 2;", "kLimit"),
        ("enum : size_t { kX, kLimit = 2 };", "kLimit"),
        ("struct Facts {\n  int x;\n};", "Facts"),
        ("class Reader final : public Base {\n};", "Reader"),
        ("int count(const Node& node, int more = 1) {\n  return 1;\n}", "count(constNode&,int)"),
    ]:
        assert f"ops/a.cpp: ingot::core::{name} is defined in src/ops/b.cpp too" in both(tmp_path, text)


def test_a_constant_of_a_header_clashes(tmp_path):
    header = "namespace ingot::core {\ninline constexpr int kLimit = 4;\n}  // namespace ingot::core\n"
    found = problems(tmp_path, ops_a_h=header, ops_b_cpp="constexpr int kLimit = 4;")
    assert found == ["ops/a.h: ingot::core::kLimit is defined in src/ops/b.cpp too"]


def test_overloads_equal_aliases_members_and_other_folders_do_not_clash(tmp_path):
    assert both(tmp_path, "int count(int x) {\n  return 1;\n}", "int count(double x) {\n  return 1;\n}") == []
    assert both(tmp_path, "using Loops = std::vector<Loop>;") == []
    assert (
        both(
            tmp_path,
            "struct A {\n  int count() { return 1; }\n};",
            "struct B {\n  int count() { return 1; }\n};",
        )
        == []
    )
    (tmp_path / "src/ops/b.cpp").unlink()
    assert (
        problems(tmp_path, ops_a_cpp="constexpr int kLimit = 4;", ir_b_cpp="constexpr int kLimit = 4;") == []
    )


def test_different_aliases_clash(tmp_path):
    assert len(both(tmp_path, "using Names = int;", "struct Names {\n};")) == 1
