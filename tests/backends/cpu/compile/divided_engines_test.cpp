// SPDX-License-Identifier: Apache-2.0
// Engines whose nodes a device and its host divide: the same results, wherever a node runs.
#include <gtest/gtest.h>

#include <thread>

#include "compiler/accuracy.h"
#include "engine/engine_file.h"
#include "engine/validate_engine.h"
#include "importers/aten/import.h"
#include "importers/pt2/read_pt2.h"
#include "ops/ops.h"
#include "support/error.h"
#include "support/file.h"
#include "tests/backends/cpu/compile/divided_device.h"
#include "tests/ops/sample_graph.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core::test {
namespace {

void expect_close(const std::vector<Tensor>& expected, const std::vector<Tensor>& got) {
  ASSERT_EQ(expected.size(), got.size());
  for (size_t i = 0; i < got.size(); ++i) expect_near(expected[i], got[i]);
}

class DividedSamples : public ::testing::TestWithParam<const Op*> {};

TEST_P(DividedSamples, GiveWhatTheInterpreterGivesOnTheHost) {
  for (const Sample& sample : GetParam()->samples()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const auto made = callable_sample(*GetParam(), sample, dtype);
      if (!made) continue;
      DividedDevice device(Choices{{std::string(GetParam()->name), "cpu"}});
      try {
        Context context(device.build(made->graph, 3));
        expect_close(evaluate_sample(*made), call_by_copies(device, context, made->operands));
      } catch (const UnsupportedError&) {
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DividedSamples, ::testing::ValuesIn(ops_with_samples()),
                         [](const auto& info) { return std::string(info.param->name); });

// Products with weights that both sides read, one of them in the CPU's layout; init divides too.
constexpr std::string_view kLayers = R"(graph g(%x: f32[B in 1..64, 32]) {
  %w = weight() {name="w", shape=[32, 32]} : f32[32, 32]
  %v = weight() {name="v", shape=[32, 32]} : f32[32, 32]
  %u = add(%w, %v)
  %a = linear(%x, %w)
  %b = relu(%a)
  %c = linear(%b, %u)
  %d = softmax(%c) {axis=1}
  %e = linear(%d, %w)
  %f = add(%e, %b)
  %g = linear(%f, %u)
  return %g, %d
})";

TensorMap layer_values(float first) {
  TensorMap values = {{"w", counted({32, 32}, first)}, {"v", counted({32, 32}, -first)}};
  for (auto& [name, value] : values) {
    for (int64_t i = 0; i < value.elements(); ++i)
      reinterpret_cast<float*>(value.data.get())[i] =
          static_cast<float>((i * 7 + static_cast<int64_t>(first)) % 13 - 6) / 32;
  }
  return values;
}

void expect_layers(Device& device, Context& context, const TensorMap& values) {
  for (const int64_t rows : {1, 5, 64, 5, 5}) {
    const std::vector<Tensor> inputs = {counted({rows, 32}, -20)};
    expect_close(evaluate(parsed(kLayers), inputs, values).outputs, call_by_copies(device, context, inputs));
  }
}

class DividedLayers : public ::testing::TestWithParam<uint32_t> {
 protected:
  aten::Imported divided() {
    aten::Imported model = model_with(kLayers, values_);
    divide_at_random(model.graph, random_);
    return model;
  }
  std::mt19937 random_{GetParam()};
  const TensorMap values_ = layer_values(1);
  DividedDevice device_{Choices{}, GetParam()};
};

TEST_P(DividedLayers, GiveWhatTheInterpreterGivesAtEveryLevel) {
  for (int level = 0; level <= 3; ++level) {
    Context context(device_.build(divided(), level));
    expect_layers(device_, context, values_);
  }
}

TEST_P(DividedLayers, TakeNewWeightsOnBothSides) {
  const std::shared_ptr<Engine> engine = device_.build(divided());
  Context before(engine);
  expect_layers(device_, before, values_);
  const TensorMap next = layer_values(5);
  SourceValues values;
  for (const auto& [name, value] : next) values[name] = {value.view(), value.data};
  engine->refit(values, Coverage::kAll);
  expect_layers(device_, before, next);
  Context after(engine->copy());
  expect_layers(device_, after, next);
}

TEST_P(DividedLayers, StreamTheWeightsOfTheDevice) {
  const std::shared_ptr<Engine> engine = device_.build(divided());
  Context context(engine);
  for (const char* budget : {"0", "50%", "all"}) {
    engine->set_weight_budget(*parse_weight_budget(budget));
    expect_layers(device_, context, values_);
  }
}

TEST_P(DividedLayers, AreKeptInFiles) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "divided.ingot";
  const auto data = device_.compile(divided());
  write_file_atomically(path, [&](const Sink& sink) { write_engine(*data, sink); });
  const std::shared_ptr<Engine> engine = Engine::load(path, {}, device_.host);
  Context context(engine);
  expect_layers(device_, context, values_);
}

TEST_P(DividedLayers, DamagedFilesAreRefused) {
  std::vector<std::byte> bytes;
  write_engine(*device_.compile(divided()),
               [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  for (int i = 0; i < 100; ++i) {
    auto damaged = std::make_shared<std::vector<std::byte>>(bytes);
    if (i % 2 == 0)
      (*damaged)[random_() % bytes.size()] ^= std::byte{static_cast<uint8_t>(1U << random_() % 8)};
    else
      damaged->resize(random_() % bytes.size());
    try {
      Context context(
          Engine::load(EngineFile::open(*damaged, damaged), {.verify = Verify::kFull}, device_.host));
      expect_layers(device_, context, values_);  // bytes between sections say nothing
    } catch (const UserError&) {
    }
  }
}

TEST_P(DividedLayers, RunInSeveralContextsAtOnce) {
  const std::shared_ptr<Engine> engine = device_.build(divided());
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Context context(engine);
      expect_layers(device_, context, values_);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Cuts, DividedLayers, ::testing::Range(1U, 9U));

class DividedModels : public ::testing::TestWithParam<std::string> {};

TEST_P(DividedModels, GiveWhatOneBackendGives) {
  const auto file = MappedFile::open(std::string(INGOT_SOURCE_DIR "/tests/data/pt2/") + GetParam() + ".pt2");
  const SymbolValues sizes = typical_sizes(aten::import_program(pt2::read_pt2(file)).graph.symbols);
  for (uint32_t cut = 1; cut <= 6; ++cut) {
    aten::Imported model = aten::import_program(pt2::read_pt2(file));
    std::vector<Tensor> inputs;
    for (const Value* input : model.graph.inputs()) {
      std::vector<int64_t> shape;
      for (const Dim& dim : input->type.shape) shape.push_back(evaluate(dim, sizes));
      Tensor tensor = make_tensor(input->type.dtype, shape);
      const TensorView flat{tensor.data.get(), input->type.dtype, {tensor.elements()}, {1}};
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        if (is_floating(input->type.dtype))
          write_double(flat, {&i, 1}, 0.125 * static_cast<double>(i % 17) - 1);
        else
          write_integer(flat, {&i, 1}, i % 2);
      }
      inputs.push_back(tensor);
    }
    Device alone;
    Context expected(alone.build(model, 3));
    std::mt19937 random(cut);
    divide_at_random(model.graph, random);
    DividedDevice device(Choices{}, cut);
    Context context(device.build(model, 3));
    for (int again = 0; again < 2; ++again) {
      const std::vector<Tensor> wanted = call_by_copies(alone, expected, inputs),
                                got = call_by_copies(device, context, inputs);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const std::vector<double> a = values_of(wanted[i]), b = values_of(got[i]);
        for (size_t k = 0; k < a.size(); ++k)
          ASSERT_TRUE(agree(a[k], b[k], allowed_difference(got[i].dtype, a[k], 1)))
              << "cut " << cut << ", output " << i << ": " << b[k] << ", not " << a[k];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Archives, DividedModels,
                         ::testing::Values("arguments", "control", "dynamic", "image", "pair", "weights"),
                         [](const auto& info) { return info.param; });

// A cache that one run fills and the next reads, written on one side and read on both.
constexpr std::string_view kCache = R"(graph g(%x: f32[1, 8], %at: i64[1]) {
  %cache = state() {name="cache", shape=[16, 8]} : f32[16, 8]
  %y = exp(%x)
  %next = index_copy(%cache, %at, %y) {axis=0}
  %s = sum(%next) {axes=[0]}
  %t = negate(%next)
  %m = reduce_maximum(%t) {axes=[0]}
  update %cache = %next
  return %s, %m
})";

TEST(DividedStates, KeepWhatEitherSideWrote) {
  const TensorMap start = {{"cache", counted({16, 8}, -3)}};
  for (const Choices& choices :
       {Choices{{"index_copy", "cpu"}},
        {{"index_copy", "fake"}, {"sum", "cpu"}},
        {{"index_copy", "cpu"}, {"sum", "cpu"}, {"negate", "cpu"}, {"reduce_maximum", "cpu"}},
        {{"exp", "cpu"}}}) {
    for (const int level : {0, 3}) {
      DividedDevice device(choices);
      const std::shared_ptr<Engine> engine = device.build(model_with(kCache, start), level);
      Context one(engine), other(engine);
      TensorMap now = start;
      for (int64_t run = 0; run < 4; ++run) {
        const std::vector<Tensor> inputs = {counted({1, 8}, static_cast<float>(run)), integers({run * 3})};
        const Evaluation expected = evaluate(parsed(kCache), inputs, now);
        expect_close(expected.outputs, call_by_copies(device, one, inputs));
        if (run == 0) expect_close(expected.outputs, call_by_copies(device, other, inputs));
        now["cache"] = expected.updates.at("cache");
      }
    }
  }
}

TEST(DividedEngines, SayWhatIsMissingAndWhichStepNeedsIt) {
  DividedDevice device(Choices{{"softmax", "cpu"}});
  const auto data = device.compile(model_with(kLayers, layer_values(1)));
  for (Image& image : data->images) {
    if (backend_of(image) == "cpu") image.target = "cpu:aarch64";
  }
  try {
    Engine::create(data, device.host);
    FAIL() << "code of another processor was loaded";
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code, "INGOT-U220");
    EXPECT_NE(error.details().message.find("'cpu' runs 'softmax"), std::string::npos) << error.what();
  }
}

TEST(DividedEngines, KernelsOnlyUseMemoryOfTheirPlace) {
  DividedDevice device(Choices{{"softmax", "cpu"}});
  const auto data = device.compile(model_with(kLayers, layer_values(1)));
  EXPECT_NO_THROW(validate_engine(*data));
  const auto step = std::ranges::find_if(data->main.steps, [](const Step& each) {
    const auto* kernel = each.as<KernelStep>();
    return kernel != nullptr && kernel->backend == "cpu";
  });
  ASSERT_NE(step, data->main.steps.end());
  for (const BufferUse& use : step->uses) {
    Place& place = data->main.buffers[use.buffer].place;
    EXPECT_EQ(place, Place{});
    place = {Place::Kind::kDevice, 0};
    EXPECT_EQ(code_of_call([&] { validate_engine(*data); }), "INGOT-U206");
    place = {};
  }
}

}  // namespace
}  // namespace ingot::core::test
