// A table of names and their numbers, for looking up many names in a row: the memory of each name is prefetched while
// others are looked up, and hardly any branch depends on the length of a name.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "common.h"

namespace tallytree {

class NameTable {
  public:
    // Names are bytes, with how many of them make a character: 1, 2 or 4.
    struct Name {
        const char *bytes;  // those before them must be readable, too: kBefore of them
        std::uint32_t size;
        std::uint8_t kind;
    };
    static constexpr std::size_t kBefore = 32;
    static constexpr std::uint32_t kLongest = 1 << 28;  // sizes are less

    void add(const Name &name) {
        if (2 * (keys_.size() + 1) > slots_.size()) grow();
        Key key;
        const std::uint64_t hash = hash_of(name, key);
        keys_.push_back(key);
        hashes_.push_back(hash);
        rests_.push_back(bytes_.size());
        bytes_.append(name.bytes, rest(name));
        slots_[free_slot(hash)] = {tag_of(hash), static_cast<std::uint32_t>(keys_.size())};
    }

    // The number of each name; -1 for unknown names.
    void look_up(std::span<const Name> names, std::int32_t *numbers) const {
        constexpr std::size_t kAhead = 64;
        Key keys[kAhead];
        std::uint64_t hashes[kAhead];
        std::size_t places[kAhead];
        if (keys_.empty()) std::fill_n(numbers, names.size(), -1);
        for (std::size_t first = 0; !keys_.empty() && first < names.size(); first += kAhead) {
            const std::size_t count = std::min(kAhead, names.size() - first);
            const Name *some = names.data() + first;
            for (std::size_t i = 0; i < count; i++) {
                hashes[i] = hash_of(some[i], keys[i]);
                __builtin_prefetch(slots_.data() + (hashes[i] & mask()));
            }
            for (std::size_t i = 0; i < count; i++) {
                places[i] = alike(tag_of(hashes[i]), hashes[i] & mask());
                __builtin_prefetch(keys_.data() + slots_[places[i]].number - 1);
            }
            for (std::size_t i = 0; i < count; i++)
                numbers[first + i] = number_of(places[i], hashes[i], keys[i], some[i]);
        }
    }

  private:
    // The last bytes of a name, preceded by zeros, and before these its size and kind.
    struct alignas(32) Key {
        std::array<std::uint64_t, 4> words;
        bool operator==(const Key &other) const {
            std::uint64_t differ = 0;
            for (int i = 0; i < 4; i++) differ |= words[i] ^ other.words[i];
            return differ == 0;
        }
    };
    static constexpr std::uint32_t kInKey = 28;
    static constexpr std::uint64_t kOne = 0x9e3779b97f4a7c15, kTwo = 0xd6e8feb86659fd93, kThree = 0xa0761d6478bd642f;

    struct Slot {
        std::uint32_t tag = 0;     // a part of the hash
        std::uint32_t number = 0;  // from 1 on; 0: nothing is here
    };

    // Which bytes of a key are of a name, by its size.
    static constexpr auto kMasks = [] {
        std::array<Key, kInKey + 1> masks{};
        for (std::uint32_t size = 0; size <= kInKey; size++)
            for (std::uint32_t i = 32 - size; i < 32; i++) masks[size].words[i / 8] |= std::uint64_t{255} << i % 8 * 8;
        return masks;
    }();

    static std::uint64_t word(const char *bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, sizeof(word));
        return word;
    }

    // How many bytes of a name are not in its key: the first ones.
    static std::uint32_t rest(const Name &name) { return std::max(name.size, kInKey) - kInKey; }

    static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
        __extension__ using Wide = unsigned __int128;
        const Wide product = static_cast<Wide>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

    // Fills in the key as well, because loading words that were just stored is slow.
    static std::uint64_t hash_of(const Name &name, Key &key) {
        static_assert(kBefore >= sizeof(Key));
        const char *from = name.bytes + name.size - sizeof(Key);
        const auto &mask = kMasks[std::min(name.size, kInKey)].words;
        const std::uint64_t a = (word(from) & mask[0]) | name.size << 3 | name.kind, b = word(from + 8) & mask[1];
        const std::uint64_t c = word(from + 16) & mask[2], d = word(from + 24) & mask[3];
        key.words = {a, b, c, d};
        std::uint64_t hash = mixed(a ^ kOne, b ^ kTwo) ^ mixed(c ^ kThree, d ^ kOne);
        for (std::uint32_t i = 0; i < rest(name); i++)
            hash = (hash ^ static_cast<unsigned char>(name.bytes[i])) * kThree;
        return mixed(hash, kTwo);
    }

    std::uint64_t mask() const { return slots_.size() - 1; }

    std::size_t free_slot(std::uint64_t hash) const {
        std::size_t place = hash & mask();
        while (slots_[place].number) place = (place + 1) & mask();
        return place;
    }

    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

    // The next slot with this tag, or an empty slot.
    std::size_t alike(std::uint32_t tag, std::size_t place) const {
        while (slots_[place].number && slots_[place].tag != tag) place = (place + 1) & mask();
        return place;
    }

    std::int32_t number_of(std::size_t place, std::uint64_t hash, const Key &key, const Name &name) const {
        for (;; place = alike(tag_of(hash), (place + 1) & mask())) {
            const std::int64_t number = std::int64_t{slots_[place].number} - 1;
            if (number < 0) return -1;
            if (!(keys_[number] == key)) continue;
            if (std::memcmp(bytes_.data() + rests_[number], name.bytes, rest(name)) == 0)
                return static_cast<std::int32_t>(number);
        }
    }

    void grow() {
        slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), {});
        for (std::size_t i = 0; i < hashes_.size(); i++)
            slots_[free_slot(hashes_[i])] = {tag_of(hashes_[i]), static_cast<std::uint32_t>(i + 1)};
    }

    std::vector<Slot> slots_;  // a power of two
    std::vector<Key> keys_;
    std::vector<std::uint64_t> hashes_;
    std::vector<std::size_t> rests_;  // where those of each name begin
    std::string bytes_;
};

}  // namespace tallytree
