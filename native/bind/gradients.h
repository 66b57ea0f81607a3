// The arrays that a batch keeps alive, and the derivatives with respect to them.
#pragma once

#include "bind/truths.h"
#include "bulk/expectations.h"

namespace tallytree {

using Numbers = std::vector<std::int64_t>;

struct Kept {  // what an item points into
    std::vector<IntTables> shifts, shown;
    std::vector<Tables> tables;
    std::vector<Scopes> shown_scopes;
    Tables emissions, links;
    std::optional<PyTruths> truths;
    Index items = 1;
};

struct PyBatch {
    std::vector<Kept> kept;
    Batch batch;
    std::vector<BatchAnswer> answers;
    std::vector<bool> plain;  // of each item: whether its last sums are plain products
};

// The derivatives with respect to all arrays that items point into, in the order of the arguments.
class Gradients {
  public:
    Gradients(const PyBatch &batch, Index groups) : batch_(batch.batch) {
        for (const Kept &kept : batch.kept) {
            const bool chains = kept.emissions.is_valid();
            auto first = static_cast<Index>(arrays_.size());
            for (Index i = 0; i < kept.items; i++) {
                first_.push_back(first);
                const auto number = static_cast<Index>(first_.size()) - 1;
                if (!chains) first += static_cast<Index>(batch_.item(number).scores.size());
            }
            for (const Tables &table : kept.tables) add(table, 0);
            if (!chains) continue;
            add(kept.emissions, 0);
            add(kept.links, kept.links.ndim() == 2 ? groups : 0);  // shared, or of each two neighbours
        }
    }

    void places(Index item, Index group, std::vector<double *> &entries) {
        const auto &scores = batch_.item(item).scores;
        entries.clear();
        for (std::size_t b = 0; b < scores.size(); b++) {
            Array &array = arrays_[first_[item] + b];
            auto &to = array.groups.empty() ? array.sum : array.groups[group];
            entries.push_back(to.data() + (scores[b].data - array.from));
        }
    }

    nb::list arrays() {
        nb::list found;
        for (Array &array : arrays_) {
            for (const auto &part : array.groups)
                for (std::size_t i = 0; i < part.size(); i++) array.sum[i] += part[i];
            found.append(to_numpy(std::move(array.sum), array.shape));
        }
        return found;
    }

  private:
    struct Array {
        const double *from;
        std::vector<std::size_t> shape;
        std::vector<double> sum;
        std::vector<std::vector<double>> groups;  // where items share its tables
    };
    void add(const Tables &table, Index groups) {
        std::vector<std::size_t> shape;
        for (std::size_t i = 0; i < table.ndim(); i++) shape.push_back(table.shape(i));
        const std::vector<double> nothing(table.size(), 0.0);
        arrays_.push_back({table.data(), shape, nothing, std::vector<std::vector<double>>(groups, nothing)});
    }

    const Batch &batch_;
    std::vector<Array> arrays_;
    std::vector<Index> first_;  // of the arrays of each item
};

}  // namespace tallytree
