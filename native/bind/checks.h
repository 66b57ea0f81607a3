// Shared by all bindings: array types, checks, wrappers.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bulk/loss_table.h"
#include "bulk/thread_pool.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tallytree {

using Scopes = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ints32 = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using IntTables = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;
using Tables = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles2 = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles3 = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

inline void require(bool holds, const char *what) {
    if (!holds) throw nb::value_error(what);
}

// For tests: the number of signal checks until one reports an interrupt; 0 for none. Guarded by the GIL.
inline std::int64_t looks_until_interrupt = 0;

inline void check_signals() {
    nb::gil_scoped_acquire gil;
    if (looks_until_interrupt > 0 && --looks_until_interrupt == 0) PyErr_SetNone(PyExc_KeyboardInterrupt);
    if (PyErr_Occurred() || PyErr_CheckSignals() != 0) throw nb::python_error();
}
inline const Poll kPoll = check_signals;
inline const Inside kPlainly = [](const std::function<void()> &body) { body(); };  // nothing is called back
inline constexpr double kEndless = std::numeric_limits<double>::infinity();

// numpy.empty and the type int64: NumPy has two 64-bit integer types if long has 64 bits.
inline nb::handle numpy_empty, numpy_int64;

constexpr std::size_t kCopied = 4096;  // arrays up to this size are copied to NumPy, larger ones are wrapped

template <class T>
nb::object copied(const std::vector<T> &values, const std::vector<std::size_t> &shape) {
    nb::object sizes = shape.size() == 1 ? nb::object(nb::int_(shape[0])) : nb::tuple(nb::cast(shape));
    nb::object array = std::is_same_v<T, double> ? numpy_empty(sizes) : numpy_empty(sizes, numpy_int64);
    Py_buffer buffer;
    if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_CONTIG) != 0) throw nb::python_error();
    std::copy(values.begin(), values.end(), static_cast<T *>(buffer.buf));
    PyBuffer_Release(&buffer);
    return array;
}

template <class T>
nb::object to_numpy(std::vector<T> values, std::vector<std::size_t> shape = {}) {
    if (shape.empty()) shape = {values.size()};
    if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>)
        if (values.size() * sizeof(T) <= kCopied) return copied(values, shape);
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    nb::object array = nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
    if constexpr (std::is_same_v<T, std::int64_t>) return array.attr("view")(numpy_int64);
    return array;
}

// A field of a record, as NumPy's structured types have them.
struct Field {
    const char *name, *format;
    std::size_t offset;
};

template <class Record>
nb::object to_records(std::vector<Record> records, std::initializer_list<Field> fields) {
    nb::list names, formats, offsets;
    for (const Field &field : fields) {
        names.append(field.name);
        formats.append(field.format);
        offsets.append(field.offset);
    }
    nb::dict layout;
    layout["names"] = names;
    layout["formats"] = formats;
    layout["offsets"] = offsets;
    layout["itemsize"] = sizeof(Record);
    auto *kept = new std::vector<Record>(std::move(records));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<Record> *>(p); });
    auto *bytes = reinterpret_cast<std::uint8_t *>(kept->data());
    nb::object flat = nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(bytes, {kept->size() * sizeof(Record)}, owner));
    return flat.attr("view")(nb::module_::import_("numpy").attr("dtype")(layout));
}

template <class Array>
auto as_span(const Array &array) {
    return std::span(array.data(), array.size());
}

template <class Array>
std::vector<std::size_t> shape_of(const Array &array) {
    std::vector<std::size_t> shape;
    for (std::size_t i = 0; i < array.ndim(); i++) shape.push_back(array.shape(i));
    return shape;
}

inline std::vector<ScopeBlock> scope_blocks(const std::vector<Scopes> &arrays) {
    std::vector<ScopeBlock> blocks;
    for (const auto &a : arrays)
        blocks.push_back({a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1))});
    return blocks;
}

template <class T, class Array>
TableBlock<T> table_block(const Array &array) {
    if (array.ndim() == 0) throw nb::value_error("tables need a leading axis");
    const auto count = static_cast<Index>(array.shape(0));
    return {array.data(), count, count ? static_cast<Index>(array.size()) / count : 0};
}

template <class T, class Arrays>
std::vector<TableBlock<T>> table_blocks(const Arrays &arrays) {
    std::vector<TableBlock<T>> blocks;
    for (const auto &array : arrays) blocks.push_back(table_block<T>(array));
    return blocks;
}

// The shapes that tables must have: a wrong one would read past the end.
template <class T>
void check_tables(const Skeleton &skeleton, const std::vector<ScopeBlock> &scopes,
                  const std::vector<TableBlock<T>> &tables) {
    if (scopes.size() != tables.size()) throw nb::value_error("one array of tables per block of scopes is needed");
    for (std::size_t i = 0; i < scopes.size(); i++) {
        if (tables[i].count != 1 && tables[i].count != scopes[i].count)
            throw nb::value_error("a block has neither one table nor one per scope");
        for (Index k = 0; k < scopes[i].count; k++) {
            Index size = 1;
            for (auto v : scopes[i].row(k)) size *= skeleton.cardinalities[v];
            if (size != tables[i].size) throw nb::value_error("a table's size does not fit its scope");
        }
    }
}

inline void check_scopes(const std::vector<ScopeBlock> &scopes, std::size_t variables) {
    for (const auto &block : scopes) {
        for (Index i = 0; i < block.count * block.arity; i++)
            if (block.data[i] < 0 || static_cast<std::size_t>(block.data[i]) >= variables)
                throw nb::value_error("a scope names a variable that is not there");
        for (Index k = 0; k < block.count && block.arity > 1; k++)
            for (Index i = 0; i < block.arity; i++)
                for (Index j = 0; j < i; j++)
                    if (block.row(k)[i] == block.row(k)[j]) throw nb::value_error("a scope names a variable twice");
    }
}

inline const MaxPlusKernels *chosen_kernels = nullptr;

// ---- wrappers that keep what they point into alive -----------------------------------------------------------------

struct PySkeleton {
    std::shared_ptr<Skeleton> skeleton;
};

struct PyLayout {
    std::shared_ptr<const Layout> layout;
};

struct PyLossTable {
    std::shared_ptr<const LossTable> table;
};

inline LayoutRequest layout_request(const Skeleton &skeleton, const std::vector<IntTables> &shifts,
                                    std::span<const Index> caps, std::span<const Index> low,
                                    std::span<const Index> high, Mode mode, double memory_limit) {
    LayoutRequest request;
    request.shifts = table_blocks<std::int64_t>(shifts);
    check_tables(skeleton, skeleton.shift_scopes.blocks, request.shifts);
    if (static_cast<Index>(caps.size()) != skeleton.statistics || low.size() != caps.size() ||
        high.size() != caps.size())
        throw nb::value_error("caps and window need one entry per statistic");
    request.caps.assign(caps.begin(), caps.end());
    request.window.low.assign(low.begin(), low.end());
    request.window.high.assign(high.begin(), high.end());
    for (std::size_t i = 0; i < low.size(); i++) request.window.open &= low[i] <= -kNoLimit && high[i] >= kNoLimit;
    request.mode = mode;
    request.memory_limit = memory_limit;
    return request;
}

inline std::vector<TableBlock<double>> score_blocks(const Skeleton &skeleton, std::span<const Tables> tables) {
    auto blocks = table_blocks<double>(tables);
    check_tables(skeleton, skeleton.score_scopes.blocks, blocks);
    return blocks;
}

template <class Root>
nb::object root_arrays(Root root, Index statistics) {
    const auto columns = static_cast<std::size_t>(statistics), rows = root.cells.size();
    return nb::make_tuple(to_numpy(std::move(root.cells)), to_numpy(std::move(root.tallies), {rows, columns}),
                          to_numpy(std::move(root.values)));
}

template <class Real>
nb::object root_of(const RunOf<Real> &run) {
    return root_arrays(run.root(), run.layout().statistics);
}

template <class Real>
void check_cell(const RunOf<Real> &run, std::int64_t cell) {
    if (cell < 0 || cell >= run.layout().tables.back().cells) throw nb::index_error("there is no such root cell");
}

template <class Real>
nb::object decoded(RunOf<Real> &run, std::int64_t cell) {
    check_cell(run, cell);
    std::vector<std::int64_t> assignment(run.layout().skeleton->cardinalities.size(), 0);
    {
        nb::gil_scoped_release release;
        run.decode(cell, assignment.data(), kPoll);
    }
    return to_numpy(std::move(assignment));
}

inline void check_threads(std::int64_t threads, double grain) {
    if (threads < 1 || !(grain > 0)) throw nb::value_error("at least one thread and some grain are needed");
}

inline void check_prime(AlgebraKind algebra, std::uint64_t prime) {
    if (algebra == AlgebraKind::Counting && (prime < 2 || prime >= (std::uint64_t{1} << 31)))
        throw nb::value_error("counting needs a prime below 2^31");
}

void bind_enums(nb::module_ &m);
void bind_errors(nb::module_ &m);
void bind_plans(nb::module_ &m);
void bind_runs(nb::module_ &m);
void bind_single(nb::module_ &m);
void bind_charts(nb::module_ &m);
void bind_chart_runs(nb::module_ &m);
void bind_batch(nb::module_ &m);
void bind_truths(nb::module_ &m);
void bind_dual_steps(nb::module_ &m);
void bind_bounds(nb::module_ &m);
void bind_chart_bounds(nb::module_ &m);
void bind_sequences(nb::module_ &m);
void bind_crf(nb::module_ &m);

}  // namespace tallytree
