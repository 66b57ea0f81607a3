#include "sequences/chain.h"

#include <algorithm>
#include <cmath>

namespace tallytree::sequences {

Sentences::Sentences(const Chain &whole, Index size) : chain(&whole), length(size) {
    labels.assign(length * whole.words, -1);
    for (Index t = 0; t < length; t++)
        for (Index a = 0; a < whole.labels[t]; a++)
            if (a != whole.end[t]) labels[t * whole.words + whole.word[t][a]] = static_cast<std::int32_t>(a);
    double rest = 0;  // of the end labels after the first
    for (Index t = length + 1; t < whole.size(); t++) rest += whole.step(t, whole.end[t - 1], whole.end[t]);
    const Index last = length == 0 ? 1 : whole.labels[length - 1];
    for (Index a = 0; a < last; a++)
        tail.push_back(length == whole.size() ? 0.0 : rest + whole.step(length, a, whole.end[length]));
}

double Sentences::score(std::span<const std::int64_t> labelling) const {
    long double sum = 0;
    for (Index t = 0; t < length; t++) sum += chain->step(t, t ? labelling[t - 1] : 0, labelling[t]);
    return static_cast<double>(sum + tail[length ? labelling[length - 1] : 0]);
}

std::vector<std::int32_t> words_of(const Sentences &sentences, const std::vector<std::int64_t> &labelling) {
    std::vector<std::int32_t> words;
    for (Index t = 0; t < sentences.length; t++) words.push_back(sentences.chain->word[t][labelling[t]]);
    return words;
}

double Sentences::magnitude(const ChainKernels &kernels) const {
    const auto largest = [&](std::span<const double> table) {
        const auto size = static_cast<Index>(table.size());
        return kernels.sizes(table.data(), 1, size, size);
    };
    double sum = 0, pair = 0;
    for (Index t = 0; t < chain->size(); t++) {
        const bool same = t && chain->pair[t].data() == chain->pair[t - 1].data();
        if (!same) pair = largest(chain->pair[t]);
        sum += largest(chain->unary[t]) + pair;
    }
    return sum;
}

}  // namespace tallytree::sequences
