// What is counted in a sentence, and how much of its past is needed to count it.
//
// A *unit* is something that occurs in a sentence and adds one to a tally, as often as its cap allows: an n-gram of the
// references, or a word of a reference at its place. A *history* is the longest end of what was read that n-grams of
// the references begin with; at least the last word, since scores depend on it.
#pragma once

#include "common.h"

namespace tallytree::sequences {

struct Unit {
    std::vector<std::int32_t> words;
    std::int32_t tally;  // which one it adds to
    Index cap;           // kUncapped: always
    Index bit;           // where the bits that say how often it was used begin; as many as the cap
};

class Histories {
  public:
    // A word that continues a history in another way than any other history that ends with the same word.
    struct Special {
        std::int32_t word, next;
        std::vector<std::int32_t> units;
    };

    Histories(Index words, std::vector<Unit> units);

    Index size() const { return start() + 1; }
    std::int32_t start() const { return static_cast<std::int32_t>(last_.size()); }
    std::int32_t last(std::int32_t history) const { return last_[history]; }
    // Without specials a word leads to the history that is this word alone, and to its own units.
    std::span<const Special> specials(std::int32_t history) const { return specials_[history]; }
    std::span<const std::int32_t> alone(std::int32_t word) const { return alone_[word]; }
    // The histories that end with a word and have specials.
    std::span<const std::int32_t> ending(std::int32_t word) const { return ending_[word]; }
    const std::vector<Unit> &units() const { return units_; }
    // Go through the units of a sentence: visit(position, units that end there).
    template <class Visit>
    void follow(std::span<const std::int32_t> sentence, Visit visit) const {
        std::int32_t history = start();
        for (std::size_t t = 0; t < sentence.size(); t++) {
            std::span<const std::int32_t> units = alone(sentence[t]);
            std::int32_t next = sentence[t];
            for (const Special &special : specials(history))
                if (special.word == sentence[t]) {
                    units = special.units;
                    next = special.next;
                }
            visit(static_cast<Index>(t), units);
            history = next;
        }
    }
    Index bits() const { return bits_; }

  private:
    void only_words(Index words);

    std::vector<Unit> units_;
    std::vector<std::int32_t> last_;              // the last word of each history but the start
    std::vector<std::vector<Special>> specials_;  // by history, in the order of words
    Ragged<std::int32_t> alone_;                  // by word: units of one word
    Ragged<std::int32_t> ending_;                 // by word: histories that end with it
    Index bits_ = 0;
};

}  // namespace tallytree::sequences
