// Objectives of many problems and their derivatives with respect to all scores: one upward and one downward pass each.
#pragma once

#include "bulk/batch.h"
#include "bulk/objectives.h"

namespace tallytree {

struct Expecting {
    std::function<TallyQuestion(Index item)> question;
    std::span<const double> importance;  // of each item: a factor of its derivatives; 0 skips them
    Index groups = 1;                    // items of one group, in order, are done by one thread
    // Where the derivatives of an item by the tables of each of its blocks are added. Those of several items may lie in
    // one place if it belongs to their group.
    std::function<void(Index item, Index group, std::vector<double *> &entries)> places;
};

struct Expectation {
    double value = 0;
    bool refused = false;  // the tables do not fit the memory limit,
    double bytes = 0;      // but need so much, or more
    bool plain = false;    // whether it was found in plain products, and not in logarithms
};

// Results do not depend on the number of threads.
std::vector<Expectation> expectations(const Batch &batch, const Expecting &what, Index threads,
                                      const MaxPlusKernels *kernels, const Poll &poll, const Inside &inside);

}  // namespace tallytree
