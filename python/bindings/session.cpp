// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gil.h"

namespace ingot::python {
Session::Session(EngineHandle engine, const Running& running)
    : engine_(std::move(engine)), running_(running) {
  for (size_t k = 0; k < ingot_engine_state_count(engine_.get()); ++k) {
    has_own_state_ |= ingot_engine_state_input(engine_.get(), k) < 0;
  }
  inputs_.resize(ingot_engine_input_count(engine_.get()));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    ingot_port port{};
    port.struct_size = sizeof(port);
    check(ingot_engine_input(engine_.get(), i, &port));
    inputs_[i] = {std::string("input '") + port.name + "'",
                  ingot_engine_input_is_updated(engine_.get(), i) != 0};
  }
}

std::unique_lock<std::mutex> Session::take_turn() {
  return has_own_state_ ? turn_.take() : std::unique_lock<std::mutex>();
}

ContextHandle Session::acquire() {
  while (!idle_.empty()) {
    ContextHandle context = std::move(idle_.back());
    idle_.pop_back();
    if (ingot_context_is_usable(context.get()) != 0) return context;  // else a group of ranks has failed
    const ReleasedGil no_gil;                                         // its end may wait for the device
    context.context.reset();
  }
  ingot_context* context = nullptr;
  const std::shared_ptr<ingot_engine> engine = engine_;
  const std::shared_ptr<const BoundGroups> bound = groups_;
  std::vector<ingot_group_binding> groups;
  for (const auto& [name, group] : *bound) groups.push_back({name.c_str(), group.get()});
  const ingot_context_options options{.struct_size = sizeof(options),
                                      .threads = running_.threads,
                                      .allocator = nullptr,
                                      .groups = groups.data(),
                                      .group_count = groups.size(),
                                      .check_indices = running_.check_indices,
                                      .without_cuda_graphs = running_.uses_graphs ? 0 : 1};
  ingot_status* status = nullptr;
  {
    const ReleasedGil no_gil;  // may wait for other ranks
    status = ingot_context_create_with(engine.get(), &options, &context);
  }
  check(status);
  return {decltype(ContextHandle::context)(context), bound, engine};
}

void Session::set_groups(BoundGroups groups) {
  const auto turn = take_turn();
  groups_ = std::make_shared<const BoundGroups>(std::move(groups));
  std::vector<ContextHandle> old;
  old.swap(idle_);
  const ReleasedGil no_gil;
  for (ContextHandle& each : old) each.context.reset();
}

void Session::release(ContextHandle context) {
  if (context.groups == groups_ && context.engine == engine_) idle_.push_back(std::move(context));
}

// A context that goes back whatever happens: a lost one would take its states along.
class Session::Borrowed {
 public:
  explicit Borrowed(Session& session) : session_(session), context_(session.acquire()) {}
  ~Borrowed() { session_.release(std::move(context_)); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ingot_context* get() const { return context_.get(); }

 private:
  Session& session_;
  ContextHandle context_;
};

// Tensors in place of lazy and strided ones are added to `kept`. `rules`: for a tensor of torch that the call
// writes, else null.
ingot_tensor Session::view(size_t i, nb::handle input, ArrayView& view, std::vector<nb::object>& kept,
                           TensorViews* views, const WriteRules* rules) {
  const char* name = i < inputs_.size() ? inputs_[i].name.c_str() : "input";
  const TensorViews::Known* known = views != nullptr ? views->find(i, input) : nullptr;
  const bool inference = rules != nullptr && (known != nullptr ? known->is_inference : is_inference(input));
  if (known != nullptr) {
    const ingot_tensor seen = known->view;
    if (rules != nullptr) check_writable(input, inference, *rules, name);
    return seen;
  }
  if (is_updated(i)) {
    view_updated_array(input, view, name);
    refuse_lazy(input, view, name);
    if (rules != nullptr) check_writable(input, inference, *rules, name);
  } else {
    view_array(input, view, name);
    if (nb::object plain = resolved(input, view); plain.is_valid()) {
      view_array(kept.emplace_back(std::move(plain)), view, name);
      return view.tensor;
    }
  }
  if (views != nullptr) views->remember(i, input, {view.tensor, inference});
  return view.tensor;
}

nb::list Session::run(std::span<const nb::handle> inputs, nb::handle like, std::optional<int32_t> like_gpu,
                      const std::shared_ptr<ingot_engine>& weights, SpareOutputs* spare, TensorViews* views) {
  const auto turn = take_turn();
  std::vector<ArrayView> arrays(inputs.size());
  std::vector<ingot_tensor> tensors(inputs.size());
  std::vector<nb::object> kept;
  std::vector<nb::handle> updated;  // those that the call writes
  std::optional<WriteRules> rules;  // asked once for all of them
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_written = is_updated(i) && is_of_torch(inputs[i]);
    if (is_written && !rules) rules = write_rules();
    tensors[i] = view(i, inputs[i], arrays[i], kept, views, is_written ? &*rules : nullptr);
    if (is_updated(i)) updated.push_back(inputs[i]);
  }
  const auto is_on_gpu = [](const ingot_tensor& tensor) { return tensor.device_type == INGOT_DEVICE_CUDA; };
  const auto on_gpu = std::ranges::find_if(tensors, is_on_gpu);
  if (on_gpu != tensors.end()) like = inputs[static_cast<size_t>(on_gpu - tensors.begin())];
  if (on_gpu != tensors.end()) like_gpu = on_gpu->device_id;
  ContextHandle context = acquire();
  void* const stream = like_gpu ? current_stream(like, *like_gpu) : nullptr;
  const auto setting = spare != nullptr ? SpareOutputs::find_setting(like, like_gpu, stream) : std::nullopt;
  Outputs outputs(like, like_gpu, setting ? spare->take(*setting) : std::vector<OutputArray>());
  const ingot_run_options options{.struct_size = sizeof(options),
                                  .allocate = &Outputs::allocate,
                                  .user = &outputs,
                                  .deadline_ns = 0,
                                  .cancel = nullptr,
                                  .outputs_on_device = like_gpu ? 1 : 0,
                                  .stream = stream,
                                  .weights = weights.get()};
  ingot_status* status = nullptr;
  {
    const ReleasedGil no_gil;
    status = ingot_context_run_with(context.get(), tensors.size(), nullptr, tensors.data(), &options);
  }
  release(std::move(context));
  bump_versions(updated);  // also after a failure, which may happen late
  if (observer_ && observer_->failure) outputs.fail(std::exchange(observer_->failure, nullptr));
  if (outputs.has_failed()) {
    ingot_status_free(status);
    outputs.rethrow();
  }
  check(status);
  if (setting) spare->refill(*setting, like, outputs.made(), outputs.were_expected());
  return outputs.take_list();
}

ingot_memory Session::memory() {
  const auto turn = take_turn();
  ingot_memory memory{};
  memory.struct_size = sizeof(memory);
  check(ingot_context_memory(Borrowed(*this).get(), &memory));
  return memory;
}

int Session::threads() {
  const auto turn = take_turn();
  return ingot_context_threads(Borrowed(*this).get());
}

void Session::set_running(int32_t check_indices, bool uses_graphs) {
  running_.check_indices = check_indices;
  running_.uses_graphs = uses_graphs;
}

void Session::reset_states() {
  const auto turn = take_turn();
  check(ingot_context_reset_states(Borrowed(*this).get()));
}

void Session::set_profiling(bool on) {
  const auto turn = take_turn();
  check(ingot_context_set_profiling(Borrowed(*this).get(), on ? 1 : 0));
}

void Session::observe(void* user, size_t step, const char* name, const ingot_tensor* value) {
  const HeldGil gil;
  auto& observer = *static_cast<Observer*>(user);
  if (observer.failure) return;
  try {
    void* data = nullptr;
    const nb::object array =
        allocate_array(tensor_of_torch(), value->dtype, value->rank, value->shape, {}, &data);
    size_t bytes = element_bytes(value->dtype);
    for (int32_t i = 0; i < value->rank; ++i) bytes *= static_cast<size_t>(value->shape[i]);
    if (bytes > 0) std::memcpy(data, value->data, bytes);
    ask_gil([&] { observer.callback(step, name, array); });
  } catch (...) {
    observer.failure = std::current_exception();
  }
}

void Session::set_observer(nb::object callback) {
  const auto turn = take_turn();
  auto observer = callback.is_none() ? nullptr : std::make_unique<Observer>(std::move(callback));
  check(ingot_context_set_observer(Borrowed(*this).get(), observer ? &observe : nullptr, observer.get()));
  observer_ = std::move(observer);
}

std::string Session::profile() {
  const auto turn = take_turn();
  ingot_text* text = nullptr;
  check(ingot_context_profile(Borrowed(*this).get(), &text));
  return take_text(text);
}

void Session::take_engine(Session& other) {
  const auto turn = take_turn();
  ContextHandle old;
  if (has_own_state_) old = acquire();
  std::vector<ContextHandle> idle;
  idle.swap(idle_);
  engine_.swap(other.engine_);
  other.idle_.clear();
  if (!has_own_state_) return;
  try {
    ContextHandle fresh = acquire();
    check(ingot_context_take_states(fresh.get(), old.get()));
    release(std::move(fresh));
  } catch (...) {
    engine_.swap(other.engine_);
    idle_.clear();
    release(std::move(old));
    throw;
  }
}

void Session::copy_states(Session& from) {
  if (!has_own_state_) return;
  const auto turn = take_turn(), other_turn = from.take_turn();
  Borrowed own(*this), other(from);
  check(ingot_context_copy_states(own.get(), other.get()));
}

Session Session::copy() {
  const auto turn = take_turn();
  ingot_engine* engine = nullptr;
  check(ingot_engine_copy(engine_.get(), &engine));
  return with_states(engine);
}

Session Session::copy_weights() {
  ingot_engine* engine = nullptr;
  check(ingot_engine_copy(engine_.get(), &engine));
  return Session(EngineHandle(engine), running_);
}

Session Session::copy_to(int gpu) {
  const auto turn = take_turn();
  ingot_engine* engine = nullptr;
  ingot_status* status = nullptr;
  const auto own = engine_;
  {
    const ReleasedGil no_gil;
    status = ingot_engine_copy_to(own.get(), gpu, &engine);
  }
  check(status);
  return with_states(engine);
}

Session Session::with_states(ingot_engine* engine) {
  Session twin{EngineHandle(engine), running_};
  twin.groups_ = groups_;
  if (!has_own_state_) return twin;
  {
    Borrowed context(*this), own(twin);
    check(ingot_context_copy_states(own.get(), context.get()));
  }
  return twin;
}

}  // namespace ingot::python
