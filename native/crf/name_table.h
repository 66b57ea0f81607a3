// A table of names and their numbers, for looking up many of them one after the other: the memory that each one needs
// is asked for while others are looked up.
#pragma once

#include <cstring>
#include <string_view>

#include "common.h"

namespace tallytree {

class NameTable {
  public:
    // Names are bytes, with how many of them make a character.
    struct Name {
        const char *bytes;
        std::uint32_t size;
        std::uint8_t kind;
    };

    void add(const Name &name) {
        if (2 * (begins_.size() + 1) > slots_.size()) grow();
        const std::uint64_t hash = hash_of(name);
        slots_[free_slot(hash)] = {hash, static_cast<std::uint32_t>(begins_.size() + 1), name.size, name.kind};
        begins_.push_back(bytes_.size());
        bytes_.append(name.bytes, name.size);
    }

    // Calls `use(i, number)` for each name, in order; -1 for one that is not there.
    template <class Use>
    void look_up(std::span<const Name> names, Use use) const {
        constexpr std::size_t kAhead = 32;
        std::uint64_t hashes[kAhead];
        const Slot *found[kAhead];
        for (std::size_t first = 0; first < names.size(); first += kAhead) {
            const std::size_t count = std::min(kAhead, names.size() - first);
            for (std::size_t i = 0; i < count; i++) {
                hashes[i] = hash_of(names[first + i]);
                if (!slots_.empty()) __builtin_prefetch(slots_.data() + (hashes[i] & mask()));
            }
            for (std::size_t i = 0; i < count; i++) {
                found[i] = slots_.empty() ? nullptr : alike(hashes[i], hashes[i] & mask());
                if (found[i]) __builtin_prefetch(bytes_.data() + begins_[found[i]->number - 1]);
            }
            for (std::size_t i = 0; i < count; i++) use(first + i, number_of(found[i], hashes[i], names[first + i]));
        }
    }

  private:
    struct Slot {
        std::uint64_t hash = 0;
        std::uint32_t number = 0;  // from 1 on; 0: nothing is here
        std::uint32_t size = 0;
        std::uint8_t kind = 0;
    };

    static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
        __extension__ using Wide = unsigned __int128;
        const Wide product = static_cast<Wide>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

    static std::uint64_t hash_of(const Name &name) {
        constexpr std::uint64_t kOne = 0x9e3779b97f4a7c15, kTwo = 0xd6e8feb86659fd93;
        std::uint64_t hash = kOne ^ (name.size * kTwo) ^ name.kind, word = 0;
        std::uint32_t i = 0;
        for (; i + 8 <= name.size; i += 8) {
            std::memcpy(&word, name.bytes + i, 8);
            hash = mixed(hash ^ word, kTwo);
        }
        word = 0;
        std::memcpy(&word, name.bytes + i, name.size - i);
        hash = mixed(hash ^ word, kOne);
        return mixed(hash, kTwo);
    }

    std::uint64_t mask() const { return slots_.size() - 1; }

    std::size_t free_slot(std::uint64_t hash) const {
        std::size_t place = hash & mask();
        while (slots_[place].number) place = (place + 1) & mask();
        return place;
    }

    // The next slot with this hash, from a place on; null where there is none.
    const Slot *alike(std::uint64_t hash, std::size_t place) const {
        for (;; place = (place + 1) & mask()) {
            const Slot &slot = slots_[place];
            if (slot.number == 0) return nullptr;
            if (slot.hash == hash) return &slot;
        }
    }

    std::int64_t number_of(const Slot *slot, std::uint64_t hash, const Name &name) const {
        for (; slot; slot = alike(hash, (static_cast<std::size_t>(slot - slots_.data()) + 1) & mask()))
            if (slot->size == name.size && slot->kind == name.kind &&
                std::memcmp(bytes_.data() + begins_[slot->number - 1], name.bytes, name.size) == 0)
                return slot->number - 1;
        return -1;
    }

    void grow() {
        std::vector<Slot> old(std::max<std::size_t>(16, 2 * slots_.size()));
        old.swap(slots_);
        for (const Slot &slot : old)
            if (slot.number) slots_[free_slot(slot.hash)] = slot;
    }

    std::vector<Slot> slots_;  // a power of two
    std::vector<std::size_t> begins_;
    std::string bytes_;
};

}  // namespace tallytree
