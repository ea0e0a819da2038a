// SPDX-License-Identifier: Apache-2.0
// ingot._core.Builder: a program of ATen calls, one call per node, and builds.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "build_calls.h"
#include "cache_session.h"
#include "cache_store.h"
#include "gil.h"
#include "ingot/build.h"
#include "session.h"

namespace ingot::python {
namespace {

struct BuilderDeleter {
  void operator()(ingot_builder* builder) const { ingot_builder_free(builder); }
};
using BuilderHandle = std::unique_ptr<ingot_builder, BuilderDeleter>;

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

void drop_object(void* object) {
  const HeldGil gil;
  Py_DECREF(static_cast<PyObject*>(object));
}

// Arguments come flattened from Python as tuples (name, kind, count, integer, number, text).
class Arguments {
 public:
  explicit Arguments(const nb::list& rows) {
    texts_.reserve(2 * rows.size());
    for (const nb::handle row : rows) add(nb::cast<nb::tuple>(row));
  }
  const ingot_argument* data() const { return arguments_.data(); }
  size_t size() const { return arguments_.size(); }

 private:
  const char* keep(nb::handle text) { return texts_.emplace_back(nb::cast<std::string>(text)).c_str(); }
  void add(const nb::tuple& row) {
    const char* name = keep(row[0]);
    arguments_.push_back({.name = name,
                          .kind = nb::cast<int32_t>(row[1]),
                          .count = nb::cast<int32_t>(row[2]),
                          .integer = nb::cast<int64_t>(row[3]),
                          .number = nb::cast<double>(row[4]),
                          .text = keep(row[5])});
  }

  std::vector<std::string> texts_;
  std::vector<ingot_argument> arguments_;
};

void check_given_options(const ingot_builder* builder, const nb::dict& options) {
  const Options given(options);
  const ingot_build_options build_options = given.for_build();
  check(ingot_check_options(builder, &build_options));
}

class Builder {
 public:
  explicit Builder(const std::string& origin) {
    ingot_builder* builder = nullptr;
    check(ingot_builder_create(origin.c_str(), &builder));
    handle_.reset(builder);
  }

  void symbol(const std::string& name, int64_t min, int64_t max, int64_t typical) {
    check(ingot_builder_symbol(handle_.get(), name.c_str(), min, max, typical));
  }

  uint32_t value(const std::string& name, int kind, int dtype, const std::vector<std::string>& dims,
                 const std::optional<std::vector<std::string>>& strides) {
    const auto dim_texts = pointers(dims);
    const auto stride_texts = strides ? pointers(*strides) : std::vector<const char*>{};
    const ingot_value value{.struct_size = sizeof(ingot_value),
                            .name = name.c_str(),
                            .kind = kind,
                            .dtype = dtype,
                            .rank = static_cast<int32_t>(dims.size()),
                            .dims = dim_texts.data(),
                            .strides = strides ? stride_texts.data() : nullptr};
    uint32_t id = 0;
    check(ingot_builder_value(handle_.get(), &value, &id));
    return id;
  }

  // `data`: the weight's tensor, kept alive by the builder and its engines. `literal`: one flattened
  // argument.
  void input(uint32_t value, int kind, const std::string& name, nb::handle data, const nb::list& literal,
             bool is_saved) {
    ArrayView view;
    const bool has_data = !data.is_none();
    if (has_data) {
      view_array(data, view, name.c_str());
      data.inc_ref();
    }
    const Arguments arguments(literal);
    const ingot_input input{.struct_size = sizeof(ingot_input),
                            .value = value,
                            .kind = kind,
                            .name = name.c_str(),
                            .data = has_data ? &view.tensor : nullptr,
                            .release = has_data ? &drop_object : nullptr,
                            .owner = has_data ? data.ptr() : nullptr,
                            .literal = arguments.size() > 0 ? arguments.data() : nullptr,
                            .is_unsaved = is_saved ? 0 : 1};
    check(ingot_builder_input(handle_.get(), &input));
  }

  void node(const std::string& target, const std::string& name, const nb::list& arguments,
            const std::vector<int64_t>& outputs, bool returns_list, const nb::tuple& source) {
    const Arguments flat(arguments);
    const std::string file = nb::cast<std::string>(source[0]), function = nb::cast<std::string>(source[2]);
    const std::string module_path = nb::cast<std::string>(source[3]);
    const ingot_node node{.struct_size = sizeof(ingot_node),
                          .target = target.c_str(),
                          .name = name.c_str(),
                          .arguments = flat.data(),
                          .argument_count = flat.size(),
                          .outputs = outputs.data(),
                          .output_count = outputs.size(),
                          .returns_list = returns_list,
                          .file = file.c_str(),
                          .line = nb::cast<int32_t>(source[1]),
                          .function = function.c_str(),
                          .module_path = module_path.c_str()};
    check(ingot_builder_node(handle_.get(), &node));
  }

  void output(const nb::list& value, int kind, const std::optional<std::string>& target) {
    const Arguments flat(value);
    check(ingot_builder_output(handle_.get(), flat.data(), kind, target ? target->c_str() : nullptr));
  }

  void other_name(const std::string& name, const std::string& tied_to) {
    check(ingot_builder_other_name(handle_.get(), name.c_str(), tied_to.empty() ? nullptr : tied_to.c_str()));
  }

  void begin_graph() { check(ingot_builder_begin_graph(handle_.get())); }
  int64_t end_graph() {
    int64_t id = 0;
    check(ingot_builder_end_graph(handle_.get(), &id));
    return id;
  }

  void signature(const std::string& input_tree, const std::string& output_tree,
                 const std::vector<std::string>& names) {
    const auto texts = pointers(names);
    check(ingot_builder_signature(handle_.get(), input_tree.c_str(), output_tree.c_str(), texts.size(),
                                  texts.data()));
  }

  void guard(const std::string& condition) { check(ingot_builder_guard(handle_.get(), condition.c_str())); }
  void pass_numbers() { check(ingot_builder_pass_numbers(handle_.get())); }
  std::string guards() { return text_of(&ingot_builder_guards); }

  std::string text() { return text_of(&ingot_builder_text); }

  // UserError or UnsupportedError if the options are invalid, or `shapes` do not match the inputs.
  void check_options(const nb::dict& options) { check_given_options(handle_.get(), options); }

  // JSON of the nodes that an engine cannot run.
  std::string unsupported(const nb::dict& options) {
    return text_under(options, &ingot_builder_unsupported_with);
  }
  // JSON of the nodes that an engine would run slowly.
  std::string slow(const nb::dict& options) { return text_under(options, &ingot_builder_slow); }

  std::string text_under(const nb::dict& options,
                         ingot_status* (*ask)(ingot_builder*, const ingot_build_options*, ingot_text**)) {
    const Options given(options);
    const ingot_build_options build_options = given.for_build();
    ingot_text* json = nullptr;
    ingot_status* status = nullptr;
    {
      const ReleasedGil no_gil;
      status = ask(handle_.get(), &build_options, &json);
    }
    check(status);
    return take_text(json);
  }

  nb::tuple build(const nb::dict& options, const nb::object& progress, const nb::dict& metadata,
                  const CacheSession* session, const nb::object& store, const nb::object& quiet) {
    const auto start = [&](const ingot_build_options& o, ingot_engine** engine, ingot_text** report) {
      return ingot_builder_build(handle_.get(), &o, engine, report);
    };
    return run_build(options, progress, metadata, session, store, start, quiet);
  }

  // Shared by all ways to build: converts options, reports progress, cancels on Ctrl-C; returns (Engine,
  // report JSON).
  template <typename Start>
  static nb::tuple run_build(const nb::dict& options, const nb::object& progress, const nb::dict& metadata,
                             const CacheSession* session, const nb::object& store, Start&& start,
                             const nb::object& quiet = nb::none()) {
    const Options given(options, metadata);
    const CacheStore cache_store(store);
    ProgressState state{.callback = progress, .quiet = quiet};
    ingot_build_options build_options =
        given.for_build(&report_progress, &state, handle_of(session), cache_store.store());
    if (!quiet.is_none()) build_options.quiet = &ask_quiet;
    ingot_engine* engine = nullptr;
    ingot_text* report = nullptr;
    ingot_status* status = nullptr;
    {
      const ReleasedGil no_gil;
      status = start(build_options, &engine, &report);
    }
    EngineHandle built(engine);
    if (state.failure) {
      ingot_status_free(status);
      ingot_text_free(report);
      std::rethrow_exception(state.failure);
    }
    check(status);
    return nb::make_tuple(nb::cast(Session(std::move(built))), take_text(report));
  }

 private:
  std::string text_of(ingot_status* (*get)(ingot_builder*, ingot_text**)) {
    ingot_text* text = nullptr;
    check(get(handle_.get(), &text));
    return take_text(text);
  }

  BuilderHandle handle_;
};

nb::tuple build_model(const std::filesystem::path& path, const nb::dict& options, const nb::object& progress,
                      const nb::dict& metadata, const CacheSession* session, const nb::object& store) {
  return Builder::run_build(options, progress, metadata, session, store,
                            [&](const ingot_build_options& o, ingot_engine** engine, ingot_text** report) {
                              return ingot_build_model(path.c_str(), &o, engine, report);
                            });
}

// `folder`: where values in other files are; None: such values are an error.
nb::tuple build_onnx(const nb::bytes& model, const std::optional<std::filesystem::path>& folder,
                     const nb::dict& options, const nb::object& progress, const nb::dict& metadata,
                     const CacheSession* session, const nb::object& store) {
  return Builder::run_build(options, progress, metadata, session, store,
                            [&](const ingot_build_options& o, ingot_engine** engine, ingot_text** report) {
                              return ingot_build_onnx_memory(model.data(), model.size(),
                                                             folder ? folder->c_str() : nullptr, &o, engine,
                                                             report);
                            });
}

}  // namespace

void bind_builder(nb::module_& module) {
  nb::class_<Builder>(module, "Builder")
      .def(nb::init<const std::string&>(), nb::arg("origin"))
      .def("symbol", &Builder::symbol)
      .def("value", &Builder::value, nb::arg("name"), nb::arg("kind"), nb::arg("dtype"), nb::arg("dims"),
           nb::arg("strides").none())
      .def("input", &Builder::input, nb::arg("value"), nb::arg("kind"), nb::arg("name"),
           nb::arg("data").none(), nb::arg("literal"), nb::arg("is_saved") = true)
      .def("other_name", &Builder::other_name, nb::arg("name"), nb::arg("tied_to"))
      .def("node", &Builder::node)
      .def("output", &Builder::output, nb::arg("value"), nb::arg("kind"), nb::arg("target").none())
      .def("begin_graph", &Builder::begin_graph)
      .def("end_graph", &Builder::end_graph)
      .def("signature", &Builder::signature)
      .def("guard", &Builder::guard)
      .def("guards", &Builder::guards)
      .def("pass_numbers", &Builder::pass_numbers)
      .def("unsupported", &Builder::unsupported, nb::arg("options"))
      .def("slow", &Builder::slow, nb::arg("options"))
      .def("text", &Builder::text)
      .def("check_options", &Builder::check_options, nb::arg("options"))
      .def("build", &Builder::build, nb::arg("options"), nb::arg("progress").none(), nb::arg("metadata"),
           nb::arg("session").none(), nb::arg("store").none(), nb::arg("quiet").none() = nb::none());
  module.def(
      "check_options", [](const nb::dict& options) { check_given_options(nullptr, options); },
      nb::arg("options"));
  module.def("build_model", &build_model, nb::arg("path"), nb::arg("options"), nb::arg("progress").none(),
             nb::arg("metadata"), nb::arg("session").none(), nb::arg("store").none());
  module.def("build_onnx", &build_onnx, nb::arg("model"), nb::arg("folder").none(), nb::arg("options"),
             nb::arg("progress").none(), nb::arg("metadata"), nb::arg("session").none(),
             nb::arg("store").none());
  module.def("imports_onnx_operator",
             [](const std::string& name) { return ingot_imports_onnx_operator(name.c_str()) != 0; });
}

}  // namespace ingot::python
