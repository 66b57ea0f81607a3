// How labellings are valued by score and tally, and where the results go: value = slope[tally] * (score + base) + offset[tally].
#pragma once
#include "counted.cuh"
#include "words.cuh"

struct Asked {  // how tallies are valued
    const double *slopes, *offsets;  // or null, for 1 and 0
    double base;
    REAL *profile;  // or null
    int tallies;

    __device__ double slope(int l) const { return slopes ? slopes[l] : 1; }
    __device__ double offset(int l) const { return offsets ? offsets[l] : 0; }
    __device__ double value(double score, int l) const {
        double most = forbidden(0.0);
        if (!(score > most) || !(offset(l) > most)) return most;
        return slope(l) * (score + base) + offset(l);
    }
};

struct Answers {  // of all sentences
    REAL *profiles;                  // or null
    double *values, *gaps, *slopes;  // the value of the labelling, the bound of the table above it, the slope of its tally
    int *cells;
    int64 *labels;
};

constexpr int kPending = -2;  // the cell of a sentence that bounds have not settled: its table decides

struct Search {  // the input of the kernel, with the batch
    const double *slopes, *offsets;
    const int *which;     // the row of both for each sentence
    const double *right;  // is subtracted from scores,
    double plus;          // which is added
    unsigned char *scratch;
    Answers answers;
    Findings found;  // of an earlier launch; its words are for the total, too
    Total all;
    int listed;  // tallies that a search by bounds keeps at most; 0: there is none, and tables are for all sentences
};

__device__ inline Asked asked_of(const Batch &batch, const Search &search, int64 b) {
    int64 row = int64(search.which[b]) * batch.tallies;
    return {search.slopes ? search.slopes + row : nullptr, search.offsets ? search.offsets + row : nullptr,
            search.plus - search.right[b], search.answers.profiles ? search.answers.profiles + b * batch.tallies : nullptr,
            batch.tallies};
}
