// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of onnx.proto.
#include "importers/onnx/read_model.h"

#include "importers/onnx/wire.h"

namespace ingot::core::onnx {
namespace {

// Against small files that ask for much memory: nested graphs, and messages in all.
constexpr int kMostLevels = 32;
constexpr size_t kMostMessages = size_t{1} << 22;

class ModelReader {
 public:
  Model read(Bytes bytes) {
    Model model;
    std::string name, version;
    bool has_graph = false;
    each(bytes, [&](const WireField& field) {
      switch (field.number) {
        case 1:
          model.ir_version = integer_of(field);
          break;
        case 2:
          name = text_of(field);
          break;
        case 3:
          version = text_of(field);
          break;
        case 7:
          model.graph = graph(message_of(field));
          has_graph = true;
          break;
        case 8:
          opset(message_of(field), model.opsets);
          break;
        case 25:
          model.functions.push_back(function(message_of(field)));
          break;
        default:
          break;
      }
    });
    if (!has_graph || model.ir_version <= 0) refuse_file("it is not a model, or has no graph");
    model.producer = version.empty() ? name : name + " " + version;
    return model;
  }

 private:
  template <typename Read>
  void each(Bytes message, const Read& read) {
    if (++messages_ > kMostMessages) refuse_file("it has too many parts");
    WireReader reader(message);
    for (WireField field; reader.next(field);) read(field);
  }

  void opset(Bytes bytes, std::map<std::string, int64_t>& opsets) {
    std::string domain;
    int64_t version = 0;
    each(bytes, [&](const WireField& field) {
      if (field.number == 1) domain = plain_domain(text_of(field));
      if (field.number == 2) version = integer_of(field);
    });
    opsets[domain] = version;
  }

  GraphDef graph(Bytes bytes) {
    if (++level_ > kMostLevels) refuse_file("its graphs are nested too deep");
    GraphDef graph;
    each(bytes, [&](const WireField& field) {
      switch (field.number) {
        case 1:
          graph.nodes.push_back(node(message_of(field)));
          break;
        case 2:
          graph.name = text_of(field);
          break;
        case 5:
          graph.initializers.push_back(tensor(message_of(field)));
          break;
        case 11:
          graph.inputs.push_back(value(message_of(field)));
          break;
        case 12:
          graph.outputs.push_back(value(message_of(field)));
          break;
        case 15:
          ++graph.sparse_initializers;
          break;
        default:
          break;
      }
    });
    --level_;
    return graph;
  }

  FunctionDef function(Bytes bytes) {
    FunctionDef function;
    each(bytes, [&](const WireField& field) {
      switch (field.number) {
        case 1:
          function.name = text_of(field);
          break;
        case 4:
          function.inputs.push_back(text_of(field));
          break;
        case 5:
          function.outputs.push_back(text_of(field));
          break;
        case 7:
          function.nodes.push_back(node(message_of(field)));
          break;
        case 9:
          opset(message_of(field), function.opsets);
          break;
        case 10:
          function.domain = plain_domain(text_of(field));
          break;
        case 11:
          function.defaults.push_back(attribute(message_of(field)));
          break;
        default:
          break;
      }
    });
    return function;
  }

  NodeDef node(Bytes bytes) {
    NodeDef node;
    each(bytes, [&](const WireField& field) {
      switch (field.number) {
        case 1:
          node.inputs.push_back(text_of(field));
          break;
        case 2:
          node.outputs.push_back(text_of(field));
          break;
        case 3:
          node.name = text_of(field);
          break;
        case 4:
          node.op = text_of(field);
          break;
        case 5:
          node.attributes.push_back(attribute(message_of(field)));
          break;
        case 7:
          node.domain = plain_domain(text_of(field));
          break;
        case 9: {
          auto [key, text] = entry(message_of(field));
          if (key == "pkg.torch.onnx.stack_trace") node.stack_trace = std::move(text);
          break;
        }
        default:
          break;
      }
    });
    return node;
  }

  AttributeDef attribute(Bytes bytes) {
    AttributeDef attribute;
    each(bytes, [&](const WireField& field) {
      switch (field.number) {
        case 1:
          attribute.name = text_of(field);
          break;
        case 2:
          attribute.number = float_of(field);
          break;
        case 3:
          attribute.integer = integer_of(field);
          break;
        case 4:
          attribute.text = bytes_of(field);
          break;
        case 5:
          attribute.tensor = std::make_shared<const TensorDef>(tensor(message_of(field)));
          break;
        case 6:
          attribute.graph = std::make_shared<const GraphDef>(graph(message_of(field)));
          break;
        case 7: {
          std::vector<float> numbers;
          append_floats(field, numbers);
          attribute.numbers.insert(attribute.numbers.end(), numbers.begin(), numbers.end());
          break;
        }
        case 8:
          append_integers(field, attribute.integers);
          break;
        case 9:
          attribute.texts.push_back(bytes_of(field));
          break;
        case 20:
          attribute.type = integer_of(field);
          break;
        case 21:
          attribute.parameter = text_of(field);
          break;
        default:
          break;
      }
    });
    return attribute;
  }

  TensorDef tensor(Bytes bytes) {
    TensorDef tensor;
    each(bytes, [&](const WireField& field) {
      switch (field.number) {
        case 1:
          append_integers(field, tensor.dims);
          break;
        case 2:
          tensor.data_type = integer_of(field);
          break;
        case 4:
          append_floats(field, tensor.floats);
          break;
        case 5:
        case 7:
        case 11:
          append_integers(field, tensor.integers);
          break;
        case 8:
          tensor.name = text_of(field);
          break;
        case 9:
          tensor.raw = message_of(field);
          break;
        case 10:
          append_doubles(field, tensor.doubles);
          break;
        case 13:
          tensor.external.insert(entry(message_of(field)));
          break;
        case 14:
          tensor.is_external = integer_of(field) == 1;
          break;
        default:
          break;
      }
    });
    return tensor;
  }

  std::pair<std::string, std::string> entry(Bytes bytes) {
    std::pair<std::string, std::string> entry;
    each(bytes, [&](const WireField& field) {
      if (field.number == 1) entry.first = text_of(field);
      if (field.number == 2) entry.second = text_of(field);
    });
    return entry;
  }

  ValueDef value(Bytes bytes) {
    ValueDef value;
    each(bytes, [&](const WireField& field) {
      if (field.number == 1) value.name = text_of(field);
      if (field.number == 2) type(message_of(field), value);
    });
    return value;
  }

  void type(Bytes bytes, ValueDef& value) {
    each(bytes, [&](const WireField& field) {
      switch (field.number) {
        case 1:
          tensor_type(message_of(field), value);
          break;
        case 4:
          value.kind = "sequence";
          break;
        case 5:
          value.kind = "map";
          break;
        case 8:
          value.kind = "sparse tensor";
          break;
        case 9:
          value.kind = "optional";
          break;
        default:
          break;
      }
    });
  }

  void tensor_type(Bytes bytes, ValueDef& value) {
    each(bytes, [&](const WireField& field) {
      if (field.number == 1) value.element_type = integer_of(field);
      if (field.number == 2) value.shape = shape(message_of(field));
    });
  }

  std::vector<DimDef> shape(Bytes bytes) {
    std::vector<DimDef> dims;
    each(bytes, [&](const WireField& field) {
      if (field.number == 1) dims.push_back(dim(message_of(field)));
    });
    return dims;
  }

  DimDef dim(Bytes bytes) {
    DimDef dim;
    each(bytes, [&](const WireField& field) {
      if (field.number == 1) dim.value = integer_of(field);
      if (field.number == 2) dim.parameter = text_of(field);
    });
    return dim;
  }

  int level_ = 0;
  size_t messages_ = 0;
};

}  // namespace

Model read_model(Bytes file) { return ModelReader().read(file); }

}  // namespace ingot::core::onnx
