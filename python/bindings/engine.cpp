// SPDX-License-Identifier: Apache-2.0
// ingot._core.Engine: files, signatures, weights, runs.
#include "bindings.h"
#include "gil.h"
#include "group.h"
#include "session.h"
#include "tensor_file.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <vector>

namespace ingot::python {
namespace {

template <typename Text>
const char* or_null(const Text& text) {
  return text.empty() ? nullptr : text.c_str();
}

Session load(const std::filesystem::path& path, int verify, int trust, int memory, int threads,
             const std::filesystem::path& trusted_keys, bool without_weights,
             const std::string& weight_budget, int gpu, const std::string& rank, const std::string& cpu) {
  const ingot_load_options options{.struct_size = sizeof(ingot_load_options),
                                   .verify = verify,
                                   .trust = trust,
                                   .memory = memory,
                                   .trusted_keys = or_null(trusted_keys),
                                   .without_weights = without_weights,
                                   .weight_budget = or_null(weight_budget),
                                   .gpu = gpu,
                                   .rank = or_null(rank),
                                   .cpu = or_null(cpu)};
  ingot_engine* engine = nullptr;
  check(ingot_engine_load(path.c_str(), &options, &engine));
  return Session(EngineHandle(engine), {.threads = threads});
}

void release_object(void* object) {
  const HeldGil gil;
  Py_DECREF(static_cast<PyObject*>(object));
}

// The engine reads from the buffer's memory during its whole life.
Session load_memory(nb::handle array, int verify, int trust, int threads,
                    const std::filesystem::path& trusted_keys, bool without_weights,
                    const std::string& weight_budget, int gpu, const std::string& rank,
                    const std::string& cpu) {
  const ingot_load_options options{.struct_size = sizeof(options),
                                   .verify = verify,
                                   .trust = trust,
                                   .memory = INGOT_MEMORY_MAP,
                                   .trusted_keys = or_null(trusted_keys),
                                   .without_weights = without_weights,
                                   .weight_budget = or_null(weight_budget),
                                   .gpu = gpu,
                                   .rank = or_null(rank),
                                   .cpu = or_null(cpu)};
  ArrayView view;
  view_array(array, view, "engine bytes");
  ingot_engine* engine = nullptr;
  array.inc_ref();
  check(ingot_engine_load_memory(view.tensor.data, view.tensor.shape[0], &release_object, array.ptr(),
                                 &options, &engine));
  return Session(EngineHandle(engine), {.threads = threads});
}

using PortGetter = ingot_status* (*)(const ingot_engine*, size_t, ingot_port*);

nb::list ports(const Session& session, size_t count, PortGetter get) {
  nb::list result;
  for (size_t i = 0; i < count; ++i) {
    ingot_port port{};
    port.struct_size = sizeof(port);
    check(get(session.engine(), i, &port));
    nb::list dims, ranges;
    for (int32_t axis = 0; axis < port.rank; ++axis) {
      dims.append(port.dims[axis]);
      ranges.append(nb::make_tuple(port.min[axis], port.max[axis]));
    }
    result.append(nb::make_tuple(port.name, port.dtype, nb::tuple(dims), nb::tuple(ranges)));
  }
  return result;
}

// `keep`: the arrays are the engine's from now on, and nobody changes them.
void refit(Session& session, nb::dict values, bool partial, bool keep, const std::string& rank) {
  std::vector<std::string> names;
  std::vector<ArrayView> views(values.size());
  std::vector<ingot_tensor> tensors;
  for (const auto& [name, value] : values) {
    names.push_back(nb::cast<std::string>(name));
    view_array(value, views[tensors.size()], names.back().c_str());
    tensors.push_back(views[tensors.size()].tensor);
  }
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  if (keep) values.inc_ref();
  const ingot_refit_options options{.struct_size = sizeof(options),
                                    .partial = partial,
                                    .release = keep ? &release_object : nullptr,
                                    .owner = keep ? values.ptr() : nullptr,
                                    .rank = or_null(rank)};
  ingot_status* status = nullptr;
  const auto engine = session.hold();
  {
    const ReleasedGil no_gil;
    status = ingot_engine_refit(engine.get(), tensors.size(), pointers.data(), tensors.data(), &options);
  }
  check(status);
  session.count_refit();
}

void refit_from_files(Session& session, const std::vector<TensorFile*>& files, bool partial,
                      const std::string& rank) {
  std::vector<const char*> names;
  std::vector<ingot_tensor> tensors;
  for (const TensorFile* file : files) {
    for (size_t i = 0; i < file->count(); ++i) {
      names.push_back(file->name(i));
      tensors.push_back(file->value(i));
    }
  }
  const ingot_refit_options options{.struct_size = sizeof(options),
                                    .partial = partial,
                                    .release = nullptr,
                                    .owner = nullptr,
                                    .rank = or_null(rank)};
  ingot_status* status = nullptr;
  const auto engine = session.hold();
  {
    const ReleasedGil no_gil;
    status = ingot_engine_refit(engine.get(), tensors.size(), names.data(), tensors.data(), &options);
  }
  check(status);
  session.count_refit();
}

void take_weights(Session& session, const Session& copy) {
  check(ingot_engine_take_weights(session.engine(), copy.engine()));
  session.count_refit();
}

bool knows_tensor(const Session& session, const std::string& name) {
  return ingot_engine_knows_tensor(session.engine(), name.c_str()) != 0;
}

std::string text_of(const Session& session, ingot_status* (*get)(const ingot_engine*, ingot_text**)) {
  ingot_text* text = nullptr;
  check(get(session.engine(), &text));
  return take_text(text);
}

void save(const Session& session, const std::filesystem::path& path) {
  ingot_status* status = nullptr;
  const auto engine = session.hold();
  {
    const ReleasedGil no_gil;
    status = ingot_engine_save(engine.get(), path.c_str());
  }
  check(status);
}

nb::bytes save_memory(const Session& session) {
  ingot_text* bytes = nullptr;
  check(ingot_engine_save_memory(session.engine(), &bytes));
  nb::bytes result(ingot_text_data(bytes), ingot_text_size(bytes));
  ingot_text_free(bytes);
  return result;
}

nb::list run(Session& session, const nb::sequence& inputs) {
  std::vector<nb::handle> handles;
  for (const nb::handle input : inputs) handles.push_back(input);
  return handles.empty() ? session.run(handles, tensor_of_torch()) : session.run(handles, handles[0]);
}

// What `rebuild` makes of the outputs, for tensors of torch; NotImplemented if an argument is something else.
nb::object call(Session& session, const nb::tuple& arguments, const nb::callable& rebuild) {
  std::vector<nb::handle> handles(arguments.size());
  std::ranges::copy(arguments, handles.begin());
  if (!std::ranges::all_of(handles, &has_exchange_api)) return nb::borrow(Py_NotImplemented);
  return rebuild(session.run_ahead(handles, handles[0]));
}

nb::dict memory(Session& session) {
  const ingot_memory memory = session.memory();
  nb::dict result;
  result["arena"] = memory.arena;
  result["states"] = memory.states;
  result["scratch"] = memory.scratch;
  result["weights"] = memory.weights;
  result["cached_plans"] = memory.cached_plans;
  return result;
}

nb::dict weight_memory(const Session& session) {
  ingot_weight_memory memory{};
  memory.struct_size = sizeof(memory);
  check(ingot_engine_weight_memory(session.engine(), &memory));
  nb::dict result;
  result["total"] = memory.total;
  result["minimum"] = memory.minimum;
  result["budget"] = memory.budget;
  result["resident"] = memory.resident;
  result["ring"] = memory.ring;
  result["available"] = memory.available;
  return result;
}

void set_weight_budget(Session& session, const std::string& budget) {
  ingot_status* status = nullptr;
  const auto engine = session.hold();
  {
    const ReleasedGil no_gil;
    status = ingot_engine_set_weight_budget(engine.get(), budget.c_str());
  }
  check(status);
}

std::vector<std::string> group_names(const Session& session) {
  std::vector<std::string> names;
  while (const char* name = ingot_engine_group_name(session.engine(), names.size())) names.emplace_back(name);
  return names;
}

void set_groups(Session& session, const nb::dict& groups) {
  BoundGroups handles;
  for (const auto& [name, group] : groups)
    handles.emplace_back(nb::cast<std::string>(name), nb::cast<const Group&>(group).handle());
  session.set_groups(std::move(handles));
}

nb::dict groups_of(const Session& session) {
  nb::dict groups;
  for (const auto& [name, group] : session.groups()) groups[name.c_str()] = nb::cast(Group(group));
  return groups;
}

nb::dict metadata(const Session& session) {
  nb::dict result;
  for (size_t i = 0; i < ingot_engine_metadata_count(session.engine()); ++i) {
    const char* key = ingot_engine_metadata_key(session.engine(), i);
    result[key] = ingot_engine_metadata_value(session.engine(), key);
  }
  return result;
}

std::vector<std::string> weight_names(const Session& session) {
  std::vector<std::string> names;
  for (size_t i = 0; i < ingot_engine_weight_count(session.engine()); ++i) {
    names.emplace_back(ingot_engine_weight_name(session.engine(), i));
  }
  return names;
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::class_<Session>(module, "Engine")
      .def_static("load", &load, nb::arg("path"), nb::arg("verify"), nb::arg("trust"), nb::arg("memory"),
                  nb::arg("threads"), nb::arg("trusted_keys"), nb::arg("without_weights"),
                  nb::arg("weight_budget") = "", nb::arg("gpu") = 0, nb::arg("rank") = "",
                  nb::arg("cpu") = "")
      .def_static("load_memory", &load_memory, nb::arg("array"), nb::arg("verify") = 0, nb::arg("trust") = 0,
                  nb::arg("threads") = 0, nb::arg("trusted_keys") = "", nb::arg("without_weights") = false,
                  nb::arg("weight_budget") = "", nb::arg("gpu") = 0, nb::arg("rank") = "",
                  nb::arg("cpu") = "")
      .def("save", &save)
      .def("save_memory", &save_memory)
      .def(
          "__deepcopy__", [](Session& s, nb::handle) { return s.copy(); }, nb::arg("memo"))
      .def("copy_to", &Session::copy_to, nb::arg("gpu"))
      .def("gpu", [](const Session& s) { return ingot_engine_gpu(s.engine()); })
      .def("inspect", [](const Session& s) { return text_of(s, &ingot_engine_inspect); })
      .def("signature", [](const Session& s) { return text_of(s, &ingot_engine_signature); })
      .def("inputs",
           [](const Session& s) {
             return ports(s, ingot_engine_input_count(s.engine()), &ingot_engine_input);
           })
      .def("outputs",
           [](const Session& s) {
             return ports(s, ingot_engine_output_count(s.engine()), &ingot_engine_output);
           })
      .def("states",
           [](const Session& s) {
             return ports(s, ingot_engine_state_count(s.engine()), &ingot_engine_state);
           })
      .def("weight_names", &weight_names)
      .def("metadata", &metadata)
      .def("threads", &Session::threads)
      .def("set_running", &Session::set_running, nb::arg("check_indices"), nb::arg("uses_graphs"))
      .def("run_like", &Session::run_like, nb::arg("other"))
      .def("refit", &refit, nb::arg("weights"), nb::arg("partial") = false, nb::arg("keep") = false,
           nb::arg("rank") = "")
      .def("refit_from_files", &refit_from_files, nb::arg("files"), nb::arg("partial"), nb::arg("rank") = "")
      .def("take_weights", &take_weights, nb::arg("copy"))
      .def("take_engine", &Session::take_engine, nb::arg("other"))
      .def("copy_states", &Session::copy_states, nb::arg("other"))
      .def("refits", &Session::refits)
      .def("knows_tensor", &knows_tensor, nb::arg("name"))
      .def("run", &run, nb::arg("inputs"))
      .def("call", &call, nb::arg("arguments"), nb::arg("rebuild"))
      .def("group_names", &group_names)
      .def("groups", &groups_of)
      .def("set_groups", &set_groups, nb::arg("groups"))
      .def("memory", &memory)
      .def("weight_memory", &weight_memory)
      .def("set_weight_budget", &set_weight_budget, nb::arg("budget"))
      .def("reset_states", &Session::reset_states)
      .def("set_profiling", &Session::set_profiling, nb::arg("on"))
      .def("profile", &Session::profile)
      .def("set_observer", &Session::set_observer, nb::arg("callback").none());
}

}  // namespace ingot::python
