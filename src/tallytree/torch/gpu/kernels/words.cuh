// What kernels say of a batch, in a few words that are read once.
#pragma once

// Bits of the first word: what is to be looked at again, and told in full.
constexpr int kEnds = 1;       // a sentence without positions, or a mask with holes
constexpr int kTags = 2;       // a tag out of range
constexpr int kScores = 4;     // nan or +inf
constexpr int kForbidden = 8;  // right tags with a score of -inf
constexpr int kUnknown = 16;   // a truth whose losses are in no table yet
constexpr int kNothing = 32;   // a sentence in which nothing is allowed

// Places of the other words.
constexpr int kTotal = 1;    // positions of all sentences
constexpr int kColumns = 2;  // columns of the tables of a sentence, at most
