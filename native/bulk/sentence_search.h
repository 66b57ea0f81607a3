// Items of a batch by bounds: chains with a truth whose losses stand in a table, in memory that one thread uses for one
// item after the other.
#pragma once

#include "bounds/tally_search.h"
#include "bulk/loss_table.h"
#include "bulk/truth_tables.h"

namespace tallytree {

// A chain with a truth, and the question about it.
struct Sentence {
    const Skeleton &skeleton;
    std::span<const TableBlock<double>> scores;  // of labels: of single variables, then of neighbours
    const Truth &truth;
    const LossTable &losses;
};

class alignas(64) SentenceSearch {
  public:
    explicit SentenceSearch(const MaxPlusKernels &kernels)
        : messages_(kernels.chains), search_(messages_, kernels.tallies) {}
    SentenceSearch(const SentenceSearch &) = delete;

    // Whether scores and statistics are those of a chain, each variable and each with the next one in order, with so
    // many states and statistics that there is something to search for.
    static bool suits(const Skeleton &skeleton, std::span<const TableBlock<double>> scores, const Truth &truth);
    // The approximate memory that it needs in addition to what earlier sentences have left.
    static double bytes(const Sentence &sentence);

    // As TallySearch::run does; prices, one for each statistic, are where it starts from if they are numbers, and are
    // replaced by where it came to.
    bool run(const Sentence &sentence, double truth_score, double *prices, bounds::TallySearch::Limits limits,
             Meter &meter);
    // The tables of neighbours that earlier sentences have left for later ones; they can be made again.
    double held() const { return held_; }
    void forget();
    // The approximate memory kept for the next sentence.
    double kept() const { return largest_ + held_ + messages_.kept(); }
    const bounds::TallySearch &found() const { return search_; }
    void decode(Index number, std::int64_t *states) const { messages_.decode(number, states); }

  private:
    void load(const Sentence &sentence);
    void load_links(const Sentence &sentence);
    void load_neighbours(const Sentence &sentence);
    void load_kinds(const Sentence &sentence);
    std::int32_t neighbours(const Sentence &sentence, Index m);
    const double *end_table();
    struct Links {  // of labels, in rows
        LinedUp forward, backward;
        const double *from = nullptr;
        Index states = 0;
        double largest = 0;
    };
    const Links &links_of(const double *table, Index states, Index slot);

    bounds::ChainMessages messages_;
    bounds::TallySearch search_;
    double largest_ = 0;       // of all sentences so far
    std::deque<Links> links_;  // of each position, or of all
    LinedUp end_, back_end_;
    // By two kinds, for one set of tables and one table of scores of neighbouring labels.
    const TruthTables *tables_ = nullptr;
    const double *of_labels_ = nullptr;
    struct Neighbours {
        LinedUp scores;
        double largest = 0;
        std::int32_t local = -1;  // its number in the chain at hand
    };
    std::vector<std::int32_t> neighbours_;  // [kind][kind]: which of these; -1: not made so far
    std::deque<Neighbours> made_;
    double held_ = 0;                  // bytes of these
    std::vector<std::int32_t> local_;  // for each kind: its number in the chain at hand
};

}  // namespace tallytree
