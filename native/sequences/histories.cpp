#include "sequences/histories.h"

#include <algorithm>
#include <map>

namespace tallytree::sequences {
namespace {

using Words = std::vector<std::int32_t>;

// The units of each n-gram, and a number for each of its beginnings of two words or more.
struct Trie {
    std::map<Words, Words> units;
    std::map<Words, std::int32_t> histories;
};

Trie trie_of(const std::vector<Unit> &units, Index words) {
    Trie trie;
    for (std::size_t u = 0; u < units.size(); u++) {
        const Words &gram = units[u].words;
        trie.units[gram].push_back(static_cast<std::int32_t>(u));
        for (std::size_t n = 2; n < gram.size(); n++) trie.histories.try_emplace({gram.begin(), gram.begin() + n}, 0);
    }
    std::int32_t number = static_cast<std::int32_t>(words);
    for (auto &[gram, history] : trie.histories) history = number++;
    return trie;
}

// What happens when a word follows a history: the longest end that is a history, and all units that end here.
Histories::Special continued(const Trie &trie, Words read) {
    Histories::Special found{read.back(), read.back(), {}};
    bool known = false;
    for (std::size_t from = 0; from < read.size(); from++) {
        const Words end(read.begin() + from, read.end());
        if (auto at = trie.histories.find(end); at != trie.histories.end() && !known) {
            found.next = at->second;
            known = true;
        }
        if (auto at = trie.units.find(end); at != trie.units.end())
            found.units.insert(found.units.end(), at->second.begin(), at->second.end());
    }
    return found;
}

}  // namespace

// Where all units are of one word, histories are words, and none has specials.
void Histories::only_words(Index words) {
    std::vector<Words> units(words);
    for (std::size_t u = 0; u < units_.size(); u++)
        if (const std::int32_t word = units_[u].words[0]; word >= 0)
            units[word].push_back(static_cast<std::int32_t>(u));
    for (std::int32_t w = 0; w < words; w++) {
        last_.push_back(w);
        alone_.push_row(units[w]);
        ending_.close_row();
    }
    specials_.resize(words + 1);
}

Histories::Histories(Index words, std::vector<Unit> units) : units_(std::move(units)) {
    for (Unit &unit : units_) {
        unit.bit = bits_;
        if (unit.cap != kUncapped) bits_ += unit.cap;
    }
    if (std::all_of(units_.begin(), units_.end(), [](const Unit &unit) { return unit.words.size() == 1; })) {
        only_words(words);
        return;
    }
    const Trie trie = trie_of(units_, words);
    for (std::int32_t w = 0; w < words; w++) {
        const auto at = trie.units.find({w});
        alone_.push_row(at == trie.units.end() ? std::span<const std::int32_t>{} : at->second);
        last_.push_back(w);
    }
    std::vector<Words> read;
    for (std::int32_t w = 0; w < words; w++) read.push_back({w});
    for (const auto &[gram, _] : trie.histories) {
        last_.push_back(gram.back());
        read.push_back(gram);
    }
    std::map<Words, Words> follow;  // the words that follow each beginning
    for (const auto &[gram, _] : trie.histories) follow[{gram.begin(), gram.end() - 1}].push_back(gram.back());
    for (const auto &[gram, _] : trie.units)
        if (gram.size() > 1) follow[{gram.begin(), gram.end() - 1}].push_back(gram.back());
    specials_.resize(last_.size() + 1);
    for (std::size_t h = 0; h < read.size(); h++) {
        Words next;
        for (std::size_t from = 0; from < read[h].size(); from++)
            if (auto at = follow.find({read[h].begin() + from, read[h].end()}); at != follow.end())
                next.insert(next.end(), at->second.begin(), at->second.end());
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
        for (std::int32_t w : next) {
            Words longer = read[h];
            longer.push_back(w);
            specials_[h].push_back(continued(trie, std::move(longer)));
        }
    }
    std::vector<Words> ending(words);
    for (std::size_t h = 0; h < read.size(); h++)
        if (!specials_[h].empty()) ending[last_[h]].push_back(static_cast<std::int32_t>(h));
    for (const Words &some : ending) ending_.push_row(some);
}

}  // namespace tallytree::sequences
