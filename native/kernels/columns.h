// One position of a chain for many numbers x at once: the hot loops of expected losses that are quotients of counts
// (crf/risks.h), compiled once per instruction set. Every entry is added up in the same order on all of them.
#pragma once

#include <cstdint>

namespace tallytree {

// Rows of labels lie `width` apart, whole vectors, with zeros beyond the labels. A column, one for each x, has two:
// the sum of weights, and that of weights times errors. On the way back, what each of the two weighs in the result.
struct ColumnPlace {
    std::int64_t columns, width;
    const double *x;        // of each column
    const double *counted;  // a row: what labels weigh that take an x, in steps off
    const double *other;    // a row: what the other labels weigh
    const double *errors;   // a row: of labels, in steps off
    const double *on;       // a row: what labels weigh in steps on
    double missed;          // errors of steps on
};

// Steps on, by how far the labels of a pair are apart. Rows of columns may be read one width beyond both ends.
struct ColumnSteps {
    std::int64_t count;
    const std::int64_t *apart;  // of the second label from the first
    const double *into;         // for each distance a row: the factor of the pair with this second label, or 0
    const double *from;         // the same for the first label
};

struct ColumnKernels {
    // Rows come in as what arrives by steps off; steps on from the rows before are added, and what the position counts.
    void (*arrive)(const ColumnPlace &place, const ColumnSteps &on, const double *before, double *rows);
    // What sums weigh before the position counts, given what they weigh after it: in steps off, and in steps on unless
    // that is null. Adds the product of the sums and their weights to a row.
    void (*weigh)(const ColumnPlace &place, const double *sums, const double *weights, double *off, double *on,
                  double *products);
    // Adds what goes back by steps on, and to one row of `pairs` for each distance the products with the sums before.
    void (*go_back)(std::int64_t columns, std::int64_t width, const ColumnSteps &on, const double *before,
                    const double *weights, double *rows, double *pairs);
};

}  // namespace tallytree
