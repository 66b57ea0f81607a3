// Attributes of positions, lists of strings or dictionaries, to rows of a sparse matrix. Python's objects are read in
// place, so that the GIL is held.
#include "bind/names.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "bind/truths.h"
#include "bulk/thread_pool.h"
#include "crf/name_table.h"

namespace tallytree {
namespace {

// Whether something is a string that is not too long, with its bytes behind its header: all but some old ones.
bool readable(PyObject *text) {
    static_assert(sizeof(PyASCIIObject) >= NameTable::kBefore);
    return PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT(text) &&
           PyUnicode_GET_LENGTH(text) < NameTable::kLongest / 4;
}

NameTable::Name name_of(PyObject *text) {
    const int kind = PyUnicode_KIND(text);
    const auto size = static_cast<std::uint32_t>(PyUnicode_GET_LENGTH(text) * kind);
    return {static_cast<const char *>(_PyUnicode_COMPACT_DATA(text)), size, static_cast<std::uint8_t>(kind)};
}

std::shared_ptr<NameTable> table_of(nb::list names) {
    auto table = std::make_shared<NameTable>();
    for (nb::handle name : names) {
        require(PyUnicode_Check(name.ptr()), "names are strings");
        nb::object text = nb::borrow(name);
        if (!readable(text.ptr())) text = nb::steal(PyUnicode_FromObject(name.ptr()));  // of a class of its own
        require(text.is_valid() && readable(text.ptr()), "a name is too long");
        table->add(name_of(text.ptr()));
    }
    return table;
}

// Reads positions one after the other; what is neither usual nor quick is left to Python.
class Reader {
  public:
    // Whether integers may be read: an error of theirs is raised in the thread that holds the GIL.
    explicit Reader(bool integers) : integers_(integers) {}

    // False where a position is something else than a list of strings, or a dictionary of strings and numbers.
    bool read(PyObject *position) {
        const bool usual = PyList_CheckExact(position)   ? read_list(position)
                           : PyDict_CheckExact(position) ? read_mapping(position)
                                                         : false;
        ends.push_back(names.size());
        return usual;
    }

    void clear() {
        names.clear();
        values.clear();
        ends.clear();
        joined_.clear();
    }

    std::vector<NameTable::Name> names;
    std::vector<double> values;
    std::vector<std::size_t> ends;  // how many names there are up to each position

  private:
    bool read_list(PyObject *position) {
        const Py_ssize_t size = PyList_GET_SIZE(position);
        for (Py_ssize_t i = 0; i < size; i++)
            if (!add(PyList_GET_ITEM(position, i), 1.0)) return false;
        return true;
    }

    bool read_mapping(PyObject *position) {
        PyObject *key = nullptr, *value = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(position, &at, &key, &value);)
            if (!(PyUnicode_CheckExact(value) ? add_joined(key, value) : add_number(key, value))) return false;
        return true;
    }

    bool add(PyObject *name, double value) {
        if (!readable(name)) return false;
        names.push_back(name_of(name));
        values.push_back(value);
        return true;
    }

    bool add_number(PyObject *name, PyObject *value) {
        if (PyFloat_CheckExact(value)) return add(name, PyFloat_AS_DOUBLE(value));
        if (PyBool_Check(value)) return add(name, value == Py_True ? 1.0 : 0.0);
        if (!integers_ || !PyLong_CheckExact(value)) return false;
        const double number = PyLong_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
        return add(name, number);
    }

    // The attribute "name:value".
    bool add_joined(PyObject *name, PyObject *value) {
        if (!readable(name) || !readable(value) || !PyUnicode_IS_ASCII(name) || !PyUnicode_IS_ASCII(value))
            return false;
        const NameTable::Name first = name_of(name), second = name_of(value);
        const std::size_t size = std::size_t{first.size} + 1 + second.size;
        char *text = joined_.room(size);
        std::memcpy(text, first.bytes, first.size);
        text[first.size] = ':';
        std::memcpy(text + first.size + 1, second.bytes, second.size);
        names.push_back({text, static_cast<std::uint32_t>(size), 1});
        values.push_back(1.0);
        return true;
    }

    // Memory that stays where it is until all of it is given back.
    class Texts {
      public:
        char *room(std::size_t size) {
            while (at_ < parts_.size() && parts_[at_].size() - used_ < size) {
                at_++;
                used_ = NameTable::kBefore;
            }
            if (at_ == parts_.size()) parts_.emplace_back(NameTable::kBefore + std::max<std::size_t>(size, 1 << 14));
            used_ += size;
            return parts_[at_].data() + used_ - size;
        }
        void clear() {
            at_ = 0;
            used_ = NameTable::kBefore;
        }

      private:
        std::vector<std::vector<char>> parts_;
        std::size_t at_ = 0, used_ = NameTable::kBefore;
    };

    const bool integers_;
    Texts joined_;
};

// Asks for the memory of positions that are read soon: Python's objects lie anywhere.
class Ahead {
  public:
    explicit Ahead(std::span<PyObject *const> positions) : positions_(positions) {}

    void look(std::size_t m) const {
        if (m + 12 < positions_.size()) __builtin_prefetch(positions_[m + 12]);
        if (m + 6 < positions_.size()) look_at_items(positions_[m + 6]);
        if (m + 2 < positions_.size()) look_at_texts(positions_[m + 2]);
    }

  private:
    static void look_at_items(PyObject *position) {
        if (!PyList_CheckExact(position)) return;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(position); i += 8)
            __builtin_prefetch(reinterpret_cast<PyListObject *>(position)->ob_item + i);
    }

    static void look_at_texts(PyObject *position) {
        if (!PyList_CheckExact(position)) return;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(position); i++) {  // most of them in two lines of the cache
            const auto *text = reinterpret_cast<const char *>(PyList_GET_ITEM(position, i));
            __builtin_prefetch(text);
            __builtin_prefetch(text + 64);
        }
    }

    std::span<PyObject *const> positions_;
};

// Rows of a sparse matrix.
struct Entries {
    std::vector<std::int64_t> ends;
    std::vector<std::int32_t> columns;
    std::vector<double> values;

    // Adds the rows of some positions; false where one of them is not usual.
    bool read(std::span<PyObject *const> positions, const NameTable &table, bool integers) {
        constexpr std::size_t kMany = 256;  // names that are looked up together
        Reader reader(integers);
        const Ahead ahead(positions);
        for (std::size_t m = 0; m < positions.size(); m++) {
            ahead.look(m);
            if (!reader.read(positions[m])) return false;
            if (reader.names.size() >= kMany || m + 1 == positions.size()) take(reader, table);
        }
        return true;
    }

    // Adds rows that come behind.
    void append(const Entries &others) {
        const auto before = static_cast<std::int64_t>(columns.size());
        for (const std::int64_t end : others.ends) ends.push_back(before + end);
        columns.insert(columns.end(), others.columns.begin(), others.columns.end());
        values.insert(values.end(), others.values.begin(), others.values.end());
    }

  private:
    // Adds the rows of the positions that were read, and forgets these.
    void take(Reader &reader, const NameTable &table) {
        std::size_t to = columns.size(), i = 0;
        numbers_.resize(reader.names.size());
        table.look_up(reader.names, numbers_.data());
        columns.resize(to + numbers_.size());
        values.resize(to + numbers_.size());
        for (const std::size_t end : reader.ends) {
            for (; i < end; i++) {  // what is not there is written over by the next one
                columns[to] = numbers_[i];
                values[to] = reader.values[i];
                to += numbers_[i] >= 0 && reader.values[i] != 0;
            }
            ends.push_back(static_cast<std::int64_t>(to));
        }
        columns.resize(to);
        values.resize(to);
        reader.clear();
    }

    std::vector<std::int32_t> numbers_;
};

// The positions of all examples; none where one of these is no list.
std::optional<std::vector<PyObject *>> positions_of(nb::list examples) {
    std::vector<PyObject *> positions;
    for (nb::handle example : examples) {
        if (!PyList_CheckExact(example.ptr())) return std::nullopt;
        PyObject **first = reinterpret_cast<PyListObject *>(example.ptr())->ob_item;
        positions.insert(positions.end(), first, first + PyList_GET_SIZE(example.ptr()));
    }
    return positions;
}

// Reads on several threads, all of which only look at objects that nobody changes while this one holds the GIL: so it
// must not look for signals, whose handlers are Python. False where something is not usual, or an integer.
bool read_shared(std::span<PyObject *const> positions, const NameTable &table, Index threads, Entries &to) {
    std::vector<Entries> parts(threads);
    std::vector<std::uint8_t> usual(threads);
    std::vector<Index> order(threads);
    std::iota(order.begin(), order.end(), 0);
    const auto cut = [&](Index part) { return part * positions.size() / threads; };
    const Work work = [&](Worker &, Index part) {
        usual[part] = parts[part].read(positions.subspan(cut(part), cut(part + 1) - cut(part)), table, false);
    };
    share_out(order, threads, work, [] {}, [](const std::function<void()> &body) { body(); });
    if (!std::all_of(usual.begin(), usual.end(), [](auto flag) { return flag; })) return false;
    for (const Entries &part : parts) to.append(part);
    return true;
}

// Where the entries of each position end, their columns and their values; none where something is not usual. `examples`
// is a list of lists of positions.
nb::object read_names(const NameTable &table, nb::list examples, std::int64_t threads) {
    constexpr std::size_t kWorthThreads = 4096;  // positions
    const auto positions = positions_of(examples);
    if (!positions) return nb::none();
    Entries entries;
    entries.ends.push_back(0);
    const bool shared = threads > 1 && positions->size() >= kWorthThreads;
    if (!(shared && read_shared(*positions, table, threads, entries)) && !entries.read(*positions, table, true))
        return nb::none();
    return nb::make_tuple(to_numpy(std::move(entries.ends)), to_numpy(std::move(entries.columns)),
                          to_numpy(std::move(entries.values)));
}

}  // namespace

void bind_names(nb::module_ &m) {
    struct PyNames {
        std::shared_ptr<NameTable> table;
    };
    nb::class_<PyNames>(m, "NameTable")
        .def(
            "__init__", [](PyNames *self, nb::list names) { new (self) PyNames{table_of(names)}; }, "names"_a)
        .def(
            "read",
            [](const PyNames &self, nb::list examples, std::int64_t threads) {
                return read_names(*self.table, examples, threads);
            },
            "examples"_a, "threads"_a);
}

}  // namespace tallytree
