// Checks inputs in one pass: where sentences end, whether tags and scores are valid, and the scores of tags.
#include "sentences.cuh"
#include "words.cuh"

struct Ends {  // a mask, or lengths, or neither if all sentences have the maximum length
    const unsigned char *mask;
    const int64 *lengths;
};

// The length of a sentence, clamped to the valid range.
__device__ int length_of(const Ends &ends, int64 b, int positions, int lane, bool &odd) {
    if (!ends.mask) {
        int64 length = ends.lengths ? ends.lengths[b] : positions;
        odd = length < 1 || length > positions;
        return odd ? 1 : int(length);
    }
    const unsigned char *mask = ends.mask + b * positions;
    double ones = 0;
    for (int t = lane; t < positions; t += kWarp) {
        ones += mask[t] != 0;
        odd |= mask[t] && t && !mask[t - 1];
    }
    int length = int(sum_of_warp(ones));
    odd |= length == 0;
    return length ? length : 1;
}

__device__ inline bool meaningless(const SCORE *scores, int64 count, int lane) {
    bool odd = false;
    for (int64 i = lane; scores && i < count; i += kWarp) odd |= !(double(scores[i]) < -forbidden(0.0));
    return odd;
}

// `labels`: the true tags, or null. `lengths`: those of `given`; `right`: gets the scores of tags; `words`: zeros.
extern "C" __global__ void look(const __grid_constant__ Padded given, const __grid_constant__ Ends ends, const int64 *labels,
                                int *lengths, double *right, int *words) {
    int lane = threadIdx.x % kWarp, positions = given.positions;
    each_sentence(given, [&](int64 b) {
        bool ended = false, wrong = false, odd;
        int length = length_of(ends, b, positions, lane, ended), steps = given.shared ? b == 0 : length - 1;
        Chain chain{&given, b, length};
        odd = meaningless(given.nodes + chain.first() * C, int64(length) * C, lane);
        odd |= meaningless(chain.step(1), int64(steps) * C * C, lane);
        if (b == 0) odd |= meaningless(given.start, C, lane) || meaningless(given.end, C, lane);
        for (int t = lane; labels && t < length; t += kWarp) {
            int64 tag = labels[chain.first() + t];
            wrong |= tag < 0 || tag >= C;
        }
        int found = (ended ? kEnds : 0) | (wrong ? kTags : 0) | (odd ? kScores : 0);
        wrong = __ballot_sync(~0u, wrong) != 0;
        double score = labels && !wrong ? chain.score(labels + chain.first(), lane) : 0;
        if (lane == 0) {
            lengths[b] = length;
            atomicAdd(words + kTotal, length);
            if (right) right[b] = score;
            if (!(score > forbidden(0.0))) found |= kForbidden;
        }
        if (found) atomicOr(words, found);
    });
}
