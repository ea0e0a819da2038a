// SPDX-License-Identifier: Apache-2.0
// einsum as batched matrix products, from left to right. The dims of an ellipsis get digits as labels.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/converters/strided.h"
#include "ops/reduce.h"

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

// Sums the dims that are no longer needed.
Labelled summed(Call& call, Labelled term, const std::string& kept) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (!has(kept, term.labels[i])) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return term;
  const DType dtype = term.value->type.dtype;
  if (!is_floating(dtype) && dtype != DType::kI64)
    call.refuse("a sum of narrow integers, whose result is i64");
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

// Sums over shared labels require equal sizes; a size of 1 is broadcast.
Labelled widened(Call& call, const Labelled& term, const Labelled& like, const std::string& inner) {
  Shape shape = term.value->type.shape;
  for (const char label : inner) {
    Dim& size = shape[term.labels.find(label)];
    if (size == Dim(1)) size = like.value->type.shape[like.labels.find(label)];
  }
  return {expanded(call, term.value, std::move(shape)), term.labels};
}

Labelled multiplied(Call& call, Labelled a, Labelled b, const std::string& kept) {
  a = summed(call, std::move(a), kept + b.labels);
  b = summed(call, std::move(b), kept + a.labels);
  const std::string shared = common(a.labels, b.labels, true);
  const std::string batch = common(shared, kept, true), inner = common(shared, kept, false);
  a = widened(call, a, b, inner);
  b = widened(call, b, a, inner);
  const std::string rows = common(a.labels, b.labels, false), columns = common(b.labels, a.labels, false);
  core::Value* product =
      emit(call, ops::matmul,
           {as_matrices(call, a, batch, rows, inner), as_matrices(call, b, batch, inner, columns)});
  Shape shape = sizes(a, batch + rows);
  for (const Dim& size : sizes(b, columns)) shape.push_back(size);
  for (size_t i = 0; i < batch.size(); ++i) shape[i] = product->type.shape[i];  // a size of 1 was broadcast
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

// The labels of an ellipsis over the last `count` of `most` dims.
std::string ellipsis_labels(size_t count, size_t most) {
  std::string labels;
  for (size_t i = most - count; i < most; ++i) labels += static_cast<char>('0' + i);
  return labels;
}
void spell_out(std::string& term, const std::string& labels) {
  if (const size_t dots = term.find("..."); dots != std::string::npos) term.replace(dots, 3, labels);
}
// Replaces each ellipsis by labels; returns the maximum number of dims of an ellipsis.
size_t spell_out_ellipses(Call& call, std::vector<std::string>& terms,
                          const std::vector<core::Value*>& values) {
  std::vector<size_t> counts;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t named = terms[i].size() - (has(terms[i], '.') ? 3 : 0), rank = values[i]->type.rank();
    if (named > rank || (named < rank && !has(terms[i], '.')))
      call.refuse("a term that does not name every dim");
    counts.push_back(rank - named);
  }
  const size_t most = *std::ranges::max_element(counts);
  if (most > 10) call.refuse("an ellipsis of more than ten dims");
  for (size_t i = 0; i < terms.size(); ++i) spell_out(terms[i], ellipsis_labels(counts[i], most));
  return most;
}

// A repeated label in one term selects the diagonal of its dims.
Labelled without_twins(Call& call, Labelled term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const size_t twin = term.labels.find(term.labels[i], i + 1);
    if (twin == std::string::npos) continue;
    const char label = term.labels[i];
    term.value = diagonal_of(call, term.value, i, twin, 0);
    std::erase(term.labels, label);
    term.labels += label;
    i = static_cast<size_t>(-1);  // restart: the dims moved
  }
  return term;
}

// The labels of an ellipsis, then those that occur once, in alphabetic order: the default result.
std::string implicit_result(const std::vector<std::string>& terms, size_t most) {
  std::string all, result;
  for (const std::string& term : terms) all += term;
  for (const char label : all) {
    const bool named = label < '0' || label > '9';
    if (named && std::ranges::count(all, label) == 1) result += label;
  }
  std::ranges::sort(result);
  return ellipsis_labels(most, most) + result;
}

void einsum(Call& call) {
  std::string equation = call.text("equation");
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms = split_terms(equation.substr(0, arrow));
  const std::vector<core::Value*> values = call.tensors("tensors");
  if (terms.size() != values.size()) call.refuse("another number of terms than tensors");
  const size_t most = spell_out_ellipses(call, terms, values);
  std::string result = arrow == std::string::npos ? implicit_result(terms, most) : equation.substr(arrow + 2);
  spell_out(result, ellipsis_labels(most, most));
  Labelled total;
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string kept = result;
    for (size_t k = i + 1; k < terms.size(); ++k) kept += terms[k];
    const Labelled term = without_twins(call, {values[i], terms[i]});
    total = i == 0 ? term : multiplied(call, total, term, kept);
  }
  call.give(ordered(call, summed(call, total, result), result).value);
}

constexpr Converter kEinsumConverters[] = {{"aten.einsum.default", einsum}};

}  // namespace

std::span<const Converter> einsum_converters() { return kEinsumConverters; }

}  // namespace ingot::core::aten
