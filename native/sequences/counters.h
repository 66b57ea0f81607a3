// What a cell stores besides its history: which units were used, or the rows of longest common subsequences.
//
// The *credit* of a cell is what it has surely paid of the tallies, less what the messages will charge again: its
// score less its credit, plus the message of its history, is never below what a sentence that goes through it can have.
#pragma once

#include "sequences/passes.h"

namespace tallytree::sequences {

using References = std::vector<std::vector<std::int32_t>>;

class Counter {
  public:
    using Bits = std::vector<std::uint64_t>;

    virtual ~Counter() = default;
    virtual Index words() const = 0;   // of bits
    virtual bool forgets() const = 0;  // whether it asks for the bits that can still matter
    virtual void start(std::uint64_t *bits) const = 0;
    // Take the prices, the shares, and the bits that can still matter at each position, if it asks for them.
    virtual void prepare(const Prices &prices, const Split &split, std::vector<Bits> matter) = 0;
    // Make a move at a position: new bits, new tallies; returns the credit.
    virtual double step(Index t, const Move &move, const std::uint64_t *from, std::uint64_t *to, Tallies &m) const = 0;
    // Whether the first dominates the second: with a score that is no lower, it cannot end up worse.
    virtual bool dominates(const std::uint64_t *a, const Tallies &ma, const std::uint64_t *b,
                           const Tallies &mb) const = 0;
    // The tallies of a whole sentence.
    virtual Tallies count(const std::vector<std::int64_t> &labelling) const = 0;
    // The shares to begin with; `likely` is a sentence that may be near the answer, or empty.
    virtual Split split(const std::vector<std::int64_t> &likely) const = 0;
    // Add a part of the shares that charge the most, by position and unit, where `used` says how often each is used.
    virtual void answer(const std::vector<double> &used, double part, Split &split) const = 0;
};

// n-grams that count no more often than their caps allow: one bit for each use.
class GramCounter final : public Counter {
  public:
    // `ends`: for each unit the reference that has it most often, and the places where it ends there.
    using Ends = std::vector<std::pair<std::size_t, std::vector<Index>>>;
    GramCounter(const Sentences &sentences, const Histories &histories, Index tallies, const References &references,
                const Ends &ends);

    Index words() const override { return (histories_.bits() + 63) / 64; }
    bool forgets() const override { return true; }
    void start(std::uint64_t *bits) const override { std::fill_n(bits, words(), 0); }
    void prepare(const Prices &prices, const Split &split, std::vector<Bits> matter) override;
    double step(Index t, const Move &move, const std::uint64_t *from, std::uint64_t *to, Tallies &m) const override;
    bool dominates(const std::uint64_t *a, const Tallies &ma, const std::uint64_t *b, const Tallies &mb) const override;
    Tallies count(const std::vector<std::int64_t> &labelling) const override;
    Split split(const std::vector<std::int64_t> &likely) const override;
    void answer(const std::vector<double> &used, double part, Split &split) const override;

  private:
    void use(std::span<const std::int32_t> units, std::uint64_t *bits, Tallies &m) const;

    const Sentences &sentences_;
    const Histories &histories_;
    Index tallies_;
    const References &references_;
    const Ends &ends_;
    std::vector<Bits> of_tally_;  // the bits of each tally
    Prices prices_{};
    std::vector<Bits> matter_;                 // by position: units that can still come
    std::vector<Bits> refunded_;               // by position: bits of units that are charged again
    std::vector<std::vector<double>> refund_;  // by position and bit
};

// Longest common subsequences with references: for each the row of the dynamic programme, one bit for each word of the
// reference, 0 where the length grows (Crochemore, Iliopoulos, Pinzon and Reid).
class RowCounter final : public Counter {
  public:
    RowCounter(const Sentences &sentences, const Histories &histories, const References &references);

    Index words() const override { return begin_.back(); }
    bool forgets() const override { return false; }
    void start(std::uint64_t *bits) const override { std::fill_n(bits, words(), ~std::uint64_t{0}); }
    void prepare(const Prices &prices, const Split &split, std::vector<Bits> matter) override;
    double step(Index t, const Move &move, const std::uint64_t *from, std::uint64_t *to, Tallies &m) const override;
    bool dominates(const std::uint64_t *a, const Tallies &ma, const std::uint64_t *b, const Tallies &mb) const override;
    Tallies count(const std::vector<std::int64_t> &labelling) const override;
    Split split(const std::vector<std::int64_t> &likely) const override;
    void answer(const std::vector<double> &used, double part, Split &split) const override;

  private:
    const std::uint64_t *places(std::int32_t word) const { return places_.data() + word * words(); }
    void read(std::int32_t word, const std::uint64_t *from, std::uint64_t *to) const;
    std::int32_t grown(const std::uint64_t *bits, std::size_t reference) const;

    const Sentences &sentences_;
    const Histories &histories_;
    const References &references_;
    std::vector<Index> begin_;            // where the bits of each reference begin
    std::vector<std::uint64_t> places_;   // by word: where it stands
    std::vector<double> worth_;           // by position and bit: what growth is worth beside later charges
    std::vector<std::uint64_t> counted_;  // by position: bits that are worth something
};

}  // namespace tallytree::sequences
