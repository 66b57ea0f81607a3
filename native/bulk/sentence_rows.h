// Chains with a truth in rows, for a search by bounds, in memory that one thread uses for one item after the other.
#pragma once

#include "bounds/chain_messages.h"
#include "bulk/loss_table.h"
#include "bulk/truth_tables.h"

namespace tallytree {

// A model with a truth, and what is asked of it.
struct LossItem {
    const Skeleton &skeleton;
    std::span<const TableBlock<double>> scores;  // of labels; of a chain those of single variables, then of neighbours
    const Truth &truth;
    const LossTable &losses;
};

class SentenceRows {
  public:
    explicit SentenceRows(const ChainKernels &kernels) : messages_(kernels) {}
    SentenceRows(const SentenceRows &) = delete;

    // Whether scores and statistics are those of a chain, each variable and each with the next one in order, with so
    // many states and statistics that there is something to search for.
    static bool suits(const LossItem &sentence);
    // What it takes, about, besides what earlier ones have left.
    static double bytes(const LossItem &sentence);

    bounds::TiedMessages &load(const LossItem &sentence);
    // A chain without a truth, which counts its states; null where counts are too many or too large.
    bounds::TiedMessages *load(const bounds::PlainChain &chain);
    static double bytes(const bounds::PlainChain &chain);
    // The tables of neighbours that earlier sentences have left for later ones; they can be made again.
    double held() const { return held_; }
    void forget();
    // The approximate memory kept for the next sentence.
    double kept() const { return largest_ + held_ + messages_.kept(); }

  private:
    void load_links(const TableBlock<double> &links);
    void load_neighbours(const LossItem &sentence);
    void load_kinds(const LossItem &sentence);
    void add_range(Index m, const TruthTables::Range *ranges, Index apart, bool parts);
    std::int32_t neighbours(const LossItem &sentence, Index m);
    const double *end_table();
    struct Links {  // of labels, in rows
        LinedUp forward, backward;
        const double *from = nullptr;
        Index states = 0;
        double largest = 0;
    };
    const Links &links_of(const double *table, Index states, Index slot);

    bounds::ChainMessages messages_;
    double largest_ = 0;       // of all sentences so far
    std::deque<Links> links_;  // of each position, or of all
    LinedUp end_, back_end_;
    // By two kinds, for one set of tables and one table of scores of neighbouring labels.
    const TruthTables *tables_ = nullptr;
    std::vector<double> of_labels_;
    struct Neighbours {
        LinedUp forward, backward;
        std::vector<double> scores;        // of entries that count something
        std::vector<std::int32_t> counts;  // of the second kind, with what it usually counts behind the first,
        std::vector<Index> keys;           // each state's in one number
        double largest = 0;
        std::int32_t local = -1;  // its number in the chain at hand
    };
    Neighbours make(const LossItem &sentence, Index m) const;
    std::vector<std::int32_t> neighbours_;  // [kind][kind]: which of these; -1: not made so far
    std::deque<Neighbours> made_;
    double held_ = 0;                  // bytes of these
    std::vector<std::int32_t> local_;  // for each kind: its number in the chain at hand
};

}  // namespace tallytree
