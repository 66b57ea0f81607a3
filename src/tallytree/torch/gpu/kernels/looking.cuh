// Checks of a sentence by a warp: where it ends, whether tags and scores are valid, and the score of its tags.
#pragma once
#include "words.cuh"

struct Ends {  // a mask, or lengths, or neither if all sentences have the maximum length
    const unsigned char *mask;
    const int64 *lengths;
};

// The length of a sentence, clamped to the valid range.
__device__ inline int length_of(const Ends &ends, int64 b, int positions, int lane, bool &odd) {
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

// Whether scores are nan or +inf, and whether some are -inf, as bits of the findings; for a lane's own ones.
__device__ inline int odd_scores(const SCORE *scores, int64 count, int lane) {
    bool meaningless = false, some = false;
    for (int64 i = lane; scores && i < count; i += kWarp) {
        double score = double(scores[i]);
        meaningless |= !(score < -forbidden(0.0));
        some |= score == forbidden(0.0);
    }
    return (meaningless ? kScores : 0) | (some ? kLimited : 0);
}

// Whether all tags of a sentence are in range.
__device__ inline bool in_range(const int64 *labels, int length, int lane) {
    bool wrong = false;
    for (int t = lane; t < length; t += kWarp) wrong |= labels[t] < 0 || labels[t] >= C;
    return __ballot_sync(~0u, wrong) == 0;
}

// `labels`: the true tags of all sentences, or null. `right`: gets their scores, or null.
__device__ inline void look_at(const Padded &given, const Ends &ends, const int64 *labels, double *right, int *words, int64 b, int lane) {
    bool ended = false;
    int length = length_of(ends, b, given.positions, lane, ended), steps = given.shared ? b == 0 : length - 1;
    Chain chain{&given, b, length};
    int odd = odd_scores(given.nodes + chain.first() * C, int64(length) * C, lane) | odd_scores(chain.step(1), int64(steps) * C * C, lane);
    if (b == 0) odd |= odd_scores(given.start, C, lane) | odd_scores(given.end, C, lane);
    bool known = !labels || in_range(labels + chain.first(), length, lane);
    int found = (ended ? kEnds : 0) | (known ? 0 : kTags) | odd;
    double score = labels && known && right ? chain.score(labels + chain.first(), lane) : 0;
    if (lane == 0) {
        given.lengths[b] = length;
        atomicAdd(words + kTotal, length);
        if (right) right[b] = score;
        if (!(score > forbidden(0.0))) found |= kForbidden;
    }
    if (found) atomicOr(words, found);
    __syncwarp();
}
