// Plain max-plus along a chain, at prices.
#pragma once

#include <cstdint>

namespace tallytree {

// Consecutive positions of a chain. Rows have `width` numbers, a multiple of 8, of which `states` are used; the rest of
// a row of scores is -inf.
struct ChainStretch {
    std::int64_t count, states, width;
    const double *const *links;  // for each position: states rows, to the states of the next one
    const double *late;          // for each position: a row, added to what comes out; any numbers behind the states
    std::int64_t late_stride;    // from one of these rows to the next
    const std::int32_t *kinds;   // for each position: which row of `prices` is its own
    const double *prices;        // rows: what the counts of a position cost in all
    double *message;             // a row: what comes in, then what comes out
    double *priced;              // for each position: a row, the message with the prices of the position
    // For each position a row, where rows have 8 numbers: the first state that leads to the best for each next one.
    std::uint8_t *from;
};

// From the last of some positions to the first: the state that led to the best.
struct ChainBack {
    std::int64_t count, width;
    const double *priced;        // of a pass
    const double *const *links;  // for each position: for each state of the next one, a row of its own states
    std::int64_t next;           // the state behind the last position
    std::int32_t *states;        // for each position; among equals the first
};

// Rows of counts, one statistic of some positions.
struct ChainCounts {
    std::int64_t count, states, stride;  // stride: from one row to the next
    const std::int64_t *counts;
};

// Positions whose best states are known.
struct ChainSettled {
    std::int64_t count, width;
    const double *priced;        // of a pass
    const double *const *links;  // for each position: for each state of the next one, a row of its own states
    const std::int32_t *best;    // for each position
    std::int64_t next;           // the state behind the last position
    double room;
};

// A choice that is not the best one at its position: how much less it is worth; inf where there is none.
struct ChainOther {
    double regret;
    std::int64_t position, state;
};

// A table of scores of two neighbours, and what is known of the states of the first.
struct StepTable {
    std::int64_t states, count;  // of the first, and of the second
    std::int64_t stride;         // from one row to the next
    const double *known, *scores;
    double *to;  // for each state of the second
};

// Two choices for each state of a row: what is known with them, and what they add, at all states alike.
struct RowChoices {
    std::int64_t count;
    const double *known, *other_known;
    double price, score, other_price, other_score;
    bool first;  // otherwise something is there already, which may be better
    double *to;
};

struct RowEnds {
    double least, most;  // -inf is not the least
};

struct ChainKernels {
    // priced[t] = message + prices[kinds[t]]; message[s'] = late[t, s'] + max over s of priced[t, s] + links[t][s, s'].
    // With rows of 8 numbers, from[t, s'] = the first s with that most; other rows are looked at again by `back`.
    void (*pass)(const ChainStretch &stretch);
    // states[t] = the first s with the most of priced[t, s] + links[t][states[t + 1], s].
    void (*back)(const ChainBack &back);
    // The largest size of a score in each of some rows, added up; -inf has none.
    double (*sizes)(const double *rows, std::int64_t count, std::int64_t stride, std::int64_t states);
    // Adds counts times odd numbers, one for each state, to a sum for each row.
    void (*digest)(const ChainCounts &counts, const std::uint64_t *odd, std::uint64_t *sums);
    // Whether each row is the one with its number; rows with numbers are `apart` from each other.
    bool (*same)(const ChainCounts &counts, const std::int32_t *numbers, const std::int64_t *rows, std::int64_t apart);
    // How many positions, from the last one down, have no state but the best one within `room` of it.
    std::int64_t (*settled)(const ChainSettled &settled);
    // The state other than the best ones that is worth the most, with the best states behind it; without `room`.
    ChainOther (*second)(const ChainSettled &settled);
    // to[i] = max over s of known[s] + scores[s, i], with a row for each s; and the same with a row for each i.
    void (*down)(const StepTable &table);
    void (*along)(const StepTable &table);
    // to[i] = the larger of (known[i] + price) + score for both choices, and of what is there.
    void (*choose)(const RowChoices &row);
    // to[i] = a[i] + b[i]; if `one`, b is the same for all.
    void (*add)(const double *a, const double *b, bool one, std::int64_t count, double *to);
    RowEnds (*ends)(const double *row, std::int64_t count);
};

}  // namespace tallytree
