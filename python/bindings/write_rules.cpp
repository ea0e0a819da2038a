// SPDX-License-Identifier: Apache-2.0
#include "write_rules.h"

#include "exchange.h"
#include "torch_functions.h"

namespace ingot::python {

WriteRules write_rules() {
  static PyObject* const enabled = find_in_torch({"is_grad_enabled"});
  return {.fixes_leaves = enabled != nullptr && nb::handle(enabled)().is(nb::bool_(true)),
          .fixes_inference = !is_inference_in_torch()};
}

bool is_inference(nb::handle object) {
  static PyObject* const answer = find_in_torch({"TensorBase", "is_inference"});
  return answers_yes(object, answer);
}

void check_writable(nb::handle object, bool is_inference, const WriteRules& rules, const char* what) {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");  // lives as long as the process
  const bool may_be_leaf =
      rules.fixes_leaves && nb::steal(PyObject_GetAttr(object.ptr(), name)).is(nb::bool_(true));
  PyErr_Clear();
  if (may_be_leaf || (is_inference && rules.fixes_inference))
    nb::module_::import_("ingot.written").attr("check_writable")(object, what);
}

}  // namespace ingot::python
