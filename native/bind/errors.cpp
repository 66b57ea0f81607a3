// Errors that have their own types in Python.
#include "bind/checks.h"

namespace tallytree {
namespace {

// As nb::exception does it, but with the fields of the error as attributes.
void translate_budget(const std::exception_ptr &thrown, void *type) {
    try {
        std::rethrow_exception(thrown);
    } catch (const BudgetExceeded &error) {
        const nb::handle python_type(static_cast<PyObject *>(type));
        nb::object value = python_type(error.what());
        value.attr("step") = error.step;
        value.attr("bytes") = error.bytes;
        PyErr_SetObject(python_type.ptr(), value.ptr());
    }
}

}  // namespace

void bind_errors(nb::module_ &m) {
    nb::dict fields;
    fields["step"] = -1;
    fields["bytes"] = std::numeric_limits<double>::infinity();
    nb::object budget = nb::steal(PyErr_NewExceptionWithDoc(
        "tallytree._native.BudgetExceededError", "A plan does not fit its memory limit.", nullptr, fields.ptr()));
    m.attr("BudgetExceededError") = budget;
    nb::register_exception_translator(translate_budget, budget.ptr());
}

}  // namespace tallytree
