// Attributes of positions, lists of strings or dictionaries, to rows of a sparse matrix. Python's objects are read in
// place, so that the GIL is held.
#include "bind/names.h"

#include <deque>

#include "bind/truths.h"
#include "crf/name_table.h"

namespace tallytree {
namespace {

NameTable::Name name_of(PyObject *text) {
    const int kind = PyUnicode_KIND(text);
    const auto size = static_cast<std::uint32_t>(PyUnicode_GET_LENGTH(text) * kind);
    return {static_cast<const char *>(PyUnicode_DATA(text)), size, static_cast<std::uint8_t>(kind)};
}

std::shared_ptr<NameTable> table_of(nb::list names) {
    auto table = std::make_shared<NameTable>();
    for (nb::handle name : names) {
        require(PyUnicode_Check(name.ptr()), "names are strings");
        require(PyUnicode_GET_LENGTH(name.ptr()) < 1 << 28, "a name is too long");
        table->add(name_of(name.ptr()));
    }
    return table;
}

// Reads positions one after the other; what is neither usual nor quick is left to Python.
class Reader {
  public:
    // False where a position is something else than a list of strings, or a dictionary of strings and numbers.
    bool read(PyObject *position) {
        const bool usual = PyList_CheckExact(position)   ? read_list(position)
                           : PyDict_CheckExact(position) ? read_mapping(position)
                                                         : false;
        sizes.push_back(static_cast<std::int64_t>(names.size()));
        return usual;
    }

    void clear() {
        names.clear();
        values.clear();
        sizes.clear();
        joined_.clear();
    }

    std::vector<NameTable::Name> names;
    std::vector<double> values;
    std::vector<std::int64_t> sizes;  // how many there are up to each position

  private:
    bool read_list(PyObject *position) {
        const Py_ssize_t size = PyList_GET_SIZE(position);
        for (Py_ssize_t i = 0; i < size; i++) {  // strings lie anywhere, and most of them in two lines of the cache
            __builtin_prefetch(PyList_GET_ITEM(position, i));
            __builtin_prefetch(reinterpret_cast<const char *>(PyList_GET_ITEM(position, i)) + 64);
        }
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
        if (!PyUnicode_CheckExact(name) || PyUnicode_GET_LENGTH(name) >= 1 << 28) return false;
        names.push_back(name_of(name));
        values.push_back(value);
        return true;
    }

    bool add_number(PyObject *name, PyObject *value) {
        if (PyFloat_CheckExact(value)) return add(name, PyFloat_AS_DOUBLE(value));
        if (!PyBool_Check(value) && !PyLong_CheckExact(value)) return false;
        const double number = PyLong_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
        return add(name, number);
    }

    // The attribute "name:value".
    bool add_joined(PyObject *name, PyObject *value) {
        if (!PyUnicode_CheckExact(name) || !PyUnicode_IS_ASCII(name) || !PyUnicode_IS_ASCII(value)) return false;
        const NameTable::Name parts[] = {name_of(name), {":", 1, 1}, name_of(value)};
        auto &text = joined_.emplace_back();
        for (const auto &part : parts) text.append(part.bytes, part.size);
        names.push_back({text.data(), static_cast<std::uint32_t>(text.size()), 1});
        values.push_back(1.0);
        return text.size() < 1 << 28;
    }

    std::deque<std::string> joined_;
};

// Rows of a sparse matrix.
struct Entries {
    std::vector<std::int64_t> ends = {0};
    std::vector<std::int32_t> columns;
    std::vector<double> values;

    // Adds the rows of the positions that were read, and forgets these.
    void take(Reader &reader, const NameTable &table) {
        std::size_t position = 0;
        const auto close = [&](std::size_t until) {
            for (; position < reader.sizes.size() && static_cast<std::size_t>(reader.sizes[position]) <= until;
                 position++)
                ends.push_back(static_cast<std::int64_t>(columns.size()));
        };
        table.look_up(reader.names, [&](std::size_t i, std::int64_t number) {
            close(i);
            if (number < 0 || reader.values[i] == 0) return;
            columns.push_back(static_cast<std::int32_t>(number));
            values.push_back(reader.values[i]);
        });
        close(reader.names.size());
        reader.clear();
    }
};

// Where the entries of each position end, their columns and their values; none where something is not usual. `examples`
// is a list of lists of positions.
nb::object read_names(const NameTable &table, nb::list examples) {
    Reader reader;
    Entries entries;
    for (nb::handle example : examples) {
        if (!PyList_CheckExact(example.ptr())) return nb::none();
        for (Py_ssize_t m = 0; m < PyList_GET_SIZE(example.ptr()); m++)
            if (!reader.read(PyList_GET_ITEM(example.ptr(), m))) return nb::none();
        entries.take(reader, table);
    }
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
            "read", [](const PyNames &self, nb::list examples) { return read_names(*self.table, examples); },
            "examples"_a);
}

}  // namespace tallytree
