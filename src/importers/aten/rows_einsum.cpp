// SPDX-License-Identifier: Apache-2.0
// einsum as batched matrix products, from left to right.
#include <algorithm>

#include "importers/aten/building.h"
#include "importers/aten/promotion.h"
#include "importers/aten/rows.h"

namespace ingot::core::aten {
namespace {

// A tensor and the label of each of its dims.
struct Labelled {
  core::Value* value;
  std::string labels;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

std::string common(const std::string& a, const std::string& b, bool in_b) {
  std::string result;
  for (const char label : a) {
    if (has(b, label) == in_b) result += label;
  }
  return result;
}

// Dims that nobody asks for are summed.
Labelled summed(Call& call, Labelled term, const std::string& kept) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (!has(kept, term.labels[i])) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return term;
  return {emit(call, ops::sum, {term.value}, ops::Reduce{axes, false}), common(term.labels, kept, true)};
}

Labelled ordered(Call& call, const Labelled& term, const std::string& labels) {
  std::vector<int64_t> order;
  for (const char label : labels) {
    call.require(has(term.labels, label), "a label of the result that no term has");
    order.push_back(static_cast<int64_t>(term.labels.find(label)));
  }
  return {transposed(call, term.value, std::move(order)), labels};
}

// Sizes of labels, in their order.
Shape sizes(const Labelled& term, const std::string& labels) {
  Shape shape;
  for (const char label : labels) shape.push_back(term.value->type.shape[term.labels.find(label)]);
  return shape;
}

core::Value* as_matrices(Call& call, const Labelled& term, const std::string& batch, const std::string& rows,
                         const std::string& columns) {
  Shape shape = sizes(term, batch);
  shape.push_back(product(sizes(term, rows)));
  shape.push_back(product(sizes(term, columns)));
  return reshaped(call, ordered(call, term, batch + rows + columns).value, std::move(shape));
}

Labelled multiplied(Call& call, Labelled a, Labelled b, const std::string& kept) {
  a = summed(call, std::move(a), kept + b.labels);
  b = summed(call, std::move(b), kept + a.labels);
  const std::string shared = common(a.labels, b.labels, true);
  const std::string batch = common(shared, kept, true), inner = common(shared, kept, false);
  const std::string rows = common(a.labels, b.labels, false), columns = common(b.labels, a.labels, false);
  core::Value* product =
      emit(call, ops::matmul,
           {as_matrices(call, a, batch, rows, inner), as_matrices(call, b, batch, inner, columns)});
  Shape shape = sizes(a, batch + rows);
  for (const Dim& size : sizes(b, columns)) shape.push_back(size);
  for (size_t i = 0; i < batch.size(); ++i) shape[i] = product->type.shape[i];  // a size of 1 gave way
  return {reshaped(call, product, std::move(shape)), batch + rows + columns};
}

// "ij,jk" -> {"ij", "jk"}.
std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (const char letter : text) {
    if (letter == ',')
      terms.emplace_back();
    else
      terms.back() += letter;
  }
  return terms;
}

// Labels that occur once, in alphabetic order: the result where the equation names none.
std::string implicit_result(const std::string& terms) {
  std::string result;
  for (const char label : terms) {
    if (label != ',' && std::ranges::count(terms, label) == 1) result += label;
  }
  std::ranges::sort(result);
  return result;
}

void einsum(Call& call) {
  std::string equation = call.text("equation");
  std::erase(equation, ' ');
  if (has(equation, '.')) call.refuse("an ellipsis in the equation");
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  const std::string result = arrow == std::string::npos ? implicit_result(left) : equation.substr(arrow + 2);
  const std::vector<std::string> terms = split_terms(left);
  const std::vector<core::Value*> values = call.tensors("tensors");
  if (terms.size() != values.size()) call.refuse("another number of terms than tensors");
  Labelled total;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (const char label : terms[i]) {
      if (std::ranges::count(terms[i], label) > 1) call.refuse("a label twice in one term");
    }
    if (terms[i].size() != values[i]->type.rank()) call.refuse("a term that does not name every dim");
    std::string kept = result;
    for (size_t k = i + 1; k < terms.size(); ++k) kept += terms[k];
    total = i == 0 ? Labelled{values[0], terms[0]} : multiplied(call, total, {values[i], terms[i]}, kept);
  }
  call.give(ordered(call, summed(call, total, result), result).value);
}

constexpr Row kRows[] = {{"aten.einsum.default", einsum}};

}  // namespace

std::span<const Row> einsum_rows() { return kRows; }

}  // namespace ingot::core::aten
