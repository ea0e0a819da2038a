# SPDX-License-Identifier: Apache-2.0
"""check_sizes must see functions where a reader sees them."""

from pathlib import Path

import check_sizes

CODE = """\
// a comment with a brace {
#include <vector>
namespace a {
namespace {
constexpr int kTable[] = {1, 2, 3};
const char* kText = R"(not { code)";
}
enum class Kind { kOne, kTwo };
struct Plain {
  int x{0};
  int get() const { return x; }
};
class Thing : public Base {
 public:
  Thing(int a, int b)
      : a_{a},
        b_(b) {
    run();
  }
  int a_, b_;
};
const Op softmax = {
    .infer = [](int x) {
      return x;
    },
};
template <typename T>
std::vector<T> Thing::many(T value,
                           int count) const {
  for (int i = 0; i < count; ++i) {
    if (value == '{') return {};
  }
  auto local = [&](int i) { return i; };
  return std::vector<T>(local(count), value);
}
auto trailing(int x) -> std::vector<int> {
  return {x};
}
}  // namespace a
"""


def test_cpp_functions():
    found = {(item.name, item.length) for item in check_sizes.cpp_functions(Path("a.cpp"), CODE)}
    assert found == {("get", 1), ("Thing", 5), ("lambda", 3), ("Thing::many", 9), ("trailing", 3)}


def test_python_functions():
    text = "def one():\n    return 1\n\n\nclass A:\n    def two(self):\n        x = 1\n        return x\n"
    found = [(item.name, item.length) for item in check_sizes.python_functions(Path("a.py"), text)]
    assert found == [("one", 2), ("two", 3)]


def limits(root: Path, name: str, text: str, exceptions: set[str]) -> list[str]:
    (root / "src").mkdir()
    (root / name).write_text(text)
    return check_sizes.check(root, exceptions)


def test_long_function_is_a_problem(tmp_path):
    body = "".join(f"  step({i});\n" for i in range(90))
    problems = limits(tmp_path, "src/a.cpp", "void work() {\n" + body + "}\n", set())
    assert problems == ["src/a.cpp:1: work has 92 lines, limit 80"]


def test_long_file_is_a_problem_unless_it_is_a_table(tmp_path):
    problems = limits(tmp_path, "src/a.cpp", "int x;\n" * 801, set())
    assert problems[0] == "src/a.cpp: 801 lines, the limit is 800"
    problems = check_sizes.check(tmp_path, {"src/a.cpp"})
    assert problems == ["the median file has 801 lines, limit 120"]
