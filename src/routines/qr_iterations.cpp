// SPDX-License-Identifier: Apache-2.0
#include "routines/qr_iterations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::core::routines {
namespace {

using Eigen::Index;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Makes [length, 0] of [x, y].
struct Turn : Rotation {
  double length;
};
Turn turn_of(double x, double y) {
  constexpr double kNegligible = 1e-250;  // the square root of less would not be accurate
  const double square = x * x + y * y;
  if (square < kNegligible) return {{1, 0}, x};
  const double length = std::sqrt(square), factor = 1 / length;
  return {{x * factor, y * factor}, length};
}

// The values of the form, divided by the largest one: squares of what is not negligible do not underflow.
class Scaled {
 public:
  explicit Scaled(CondensedForm& form) : form_(form) {
    largest_ = form.diagonal.cwiseAbs().maxCoeff();
    if (form.beside.size() > 0) largest_ = std::max(largest_, form.beside.cwiseAbs().maxCoeff());
    if (largest_ == 0) largest_ = 1;
    form.diagonal /= largest_;
    form.beside /= largest_;
  }
  ~Scaled() { form_.diagonal *= largest_; }
  Scaled(const Scaled&) = delete;
  Scaled& operator=(const Scaled&) = delete;

 private:
  CondensedForm& form_;
  double largest_;
};

// Iterates blocks first..last of `form` that have no negligible elements beside the diagonal, until there is
// none: iterate(first, last). is_negligible(i) is of form.beside(i).
template <typename IsNegligible, typename Iterate>
bool find_blocks(CondensedForm& form, const IsNegligible& is_negligible, const Iterate& iterate) {
  constexpr Index kMostIterations = 30;  // per value; 2 are usual
  Index iterations = kMostIterations * form.diagonal.size();
  for (Index last = form.diagonal.size() - 1; last > 0;) {
    Index first = last;
    while (first > 0 && !is_negligible(first - 1)) --first;
    if (first > 0) form.beside(first - 1) = 0;
    if (first == last) {
      --last;
    } else {
      if (iterations-- == 0) return false;
      iterate(first, last);
    }
  }
  return true;
}
// Elements beside the diagonal may be replaced by zero up to this.
double negligible(const CondensedForm& form, Index i) {
  return kEpsilon * (std::abs(form.diagonal(i)) + std::abs(form.diagonal(i + 1)) + kEpsilon);
}

void begin(ColumnRotations* vectors, Index first) {
  if (vectors != nullptr) vectors->begin(first);
}
void rotate(ColumnRotations* vectors, const Rotation& rotation) {
  if (vectors != nullptr) vectors->add(rotation);
}
void finish(ColumnRotations* vectors) {
  if (vectors != nullptr) vectors->apply();
}

// Wilkinson's: the eigenvalue of the last two rows and columns that is closest to d[last].
double shift_beside(const CondensedForm& form, Index last, double beside) {
  const double half = (form.diagonal(last - 1) - form.diagonal(last)) / 2,
               root = std::copysign(std::sqrt(half * half + beside * beside), half);
  return form.diagonal(last) - beside * (beside / (half + root));
}

void iterate_tridiagonal(CondensedForm& form, Index first, Index last, ColumnRotations& vectors) {
  double *const d = form.diagonal.data(), *const e = form.beside.data();
  const double shift = shift_beside(form, last, e[last - 1]);
  vectors.begin(first);
  double c = 1, s = 1, moved = 0, x = d[first] - shift;
  for (Index i = first; i < last; ++i) {
    const double along = c * e[i], across = s * e[i];
    const Turn turn = turn_of(x, across);
    vectors.add(turn);
    c = turn.c;
    s = turn.s;
    if (i > first) e[i - 1] = turn.length;
    const double kept = d[i] - moved, change = (d[i + 1] - kept) * s + 2 * c * along;
    moved = s * change;
    d[i] = kept + moved;
    x = c * change - along;
  }
  d[last] -= moved;
  e[last - 1] = x;
}

// Without vectors, squares of sines and cosines suffice, as Pal, Walker and Kahan found: no roots, which
// otherwise are most of the time. form.beside has squares.
void iterate_squares(CondensedForm& form, Index first, Index last) {
  constexpr double kSmall = 1e-100;  // the quotient of squares by less could overflow
  double *const d = form.diagonal.data(), *const squares = form.beside.data();
  const double shift = shift_beside(form, last, std::sqrt(squares[last - 1]));
  double c = 1, s = 0, along = d[first] - shift, square = along * along;
  for (Index i = first; i < last; ++i) {
    const double beside = squares[i], sum = square + beside, before = along, previous = c;
    if (i > first) squares[i - 1] = s * sum;
    c = square / sum;
    s = beside / sum;
    along = c * (d[i + 1] - shift) - s * before;
    d[i] = before + (d[i + 1] - along);
    square = c > kSmall ? along * along * (sum / square) : previous * beside;
  }
  squares[last - 1] = s * square;
  d[last] = shift + along;
}

// The smaller singular value of the last two rows and columns, or 0 where it would make no difference.
double shift_of(const CondensedForm& form, Index first, Index last) {
  const double *const d = form.diagonal.data(), *const e = form.beside.data();
  const auto values = form.diagonal.segment(first, last - first + 1).cwiseAbs();
  if (values.minCoeff() <=
      kEpsilon * std::max(values.maxCoeff(), form.beside.segment(first, last - first).cwiseAbs().maxCoeff()))
    return 0;
  const double x = std::abs(d[last - 1]), y = std::abs(d[last]), square = e[last - 1] * e[last - 1],
               larger = std::sqrt((x + y) * (x + y) + square) + std::sqrt((x - y) * (x - y) + square),
               shift = 2 * x * (y / larger), part = shift / d[first];
  return part * part < kEpsilon ? 0 : shift;
}

struct BothVectors {
  ColumnRotations *left, *right;
};

// An iteration without a shift finds zeros beside zeros of the diagonal, and small values accurately.
void iterate_unshifted(CondensedForm& form, Index first, Index last, const BothVectors& vectors) {
  double *const d = form.diagonal.data(), *const e = form.beside.data();
  Turn left{{1, 0}, 0}, right = left;
  for (Index i = first; i < last; ++i) {
    right = turn_of(d[i] * right.c, e[i]);
    if (i > first) e[i - 1] = left.s * right.length;
    left = turn_of(left.c * right.length, d[i + 1] * right.s);
    d[i] = left.length;
    rotate(vectors.right, right);
    rotate(vectors.left, left);
  }
  const double rest = d[last] * right.c;
  d[last] = rest * left.c;
  e[last - 1] = rest * left.s;
}

void iterate_shifted(CondensedForm& form, Index first, Index last, double shift, const BothVectors& vectors) {
  double *const d = form.diagonal.data(), *const e = form.beside.data();
  double x = (std::abs(d[first]) - shift) * (std::copysign(1.0, d[first]) + shift / d[first]), y = e[first];
  for (Index i = first; i < last; ++i) {
    const Turn right = turn_of(x, y);
    if (i > first) e[i - 1] = right.length;
    const double along = right.c * d[i] + right.s * e[i], beside = right.c * e[i] - right.s * d[i];
    const Turn left = turn_of(along, right.s * d[i + 1]);
    const double below = right.c * d[i + 1];
    d[i] = left.length;
    x = left.c * beside + left.s * below;
    d[i + 1] = left.c * below - left.s * beside;
    if (i + 1 < last) {
      y = left.s * e[i + 1];
      e[i + 1] *= left.c;
    }
    rotate(vectors.right, right);
    rotate(vectors.left, left);
  }
  e[last - 1] = x;
}

}  // namespace

bool find_eigenvalues(CondensedForm& form, ColumnRotations* vectors) {
  const Scaled scaled(form);
  if (vectors == nullptr) {
    form.beside = form.beside.cwiseAbs2().eval();
    return find_blocks(
        form, [&](Index i) { return form.beside(i) <= negligible(form, i) * negligible(form, i); },
        [&](Index first, Index last) { iterate_squares(form, first, last); });
  }
  const bool is_found = find_blocks(
      form, [&](Index i) { return std::abs(form.beside(i)) <= negligible(form, i); },
      [&](Index first, Index last) { iterate_tridiagonal(form, first, last, *vectors); });
  vectors->apply();
  return is_found;
}

bool find_singular_values(CondensedForm& form, ColumnRotations* left, ColumnRotations* right) {
  const Scaled scaled(form);
  const BothVectors vectors{left, right};
  const auto is_negligible = [&](Index i) { return std::abs(form.beside(i)) <= negligible(form, i); };
  const bool is_found = find_blocks(form, is_negligible, [&](Index first, Index last) {
    const double shift = shift_of(form, first, last);
    begin(left, first);
    begin(right, first);
    if (shift == 0)
      iterate_unshifted(form, first, last, vectors);
    else
      iterate_shifted(form, first, last, shift, vectors);
  });
  finish(left);
  finish(right);
  return is_found;
}

}  // namespace ingot::core::routines
