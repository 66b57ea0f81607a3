// The findings of kernels about a batch, in a few words that are read once.
#pragma once

// Bits of the first word: findings that are checked again on the CPU for a full message.
constexpr int kEnds = 1;       // a sentence without positions, or a mask with holes
constexpr int kTags = 2;       // a tag out of range
constexpr int kScores = 4;     // nan or +inf
constexpr int kForbidden = 8;  // true tags with a score of -inf
constexpr int kUnknown = 16;   // a truth whose losses are not in a table yet
constexpr int kNothing = 32;   // a sentence without an allowed labelling

// Indices of the other words.
constexpr int kTotal = 1;    // the number of positions of all sentences
constexpr int kColumns = 2;  // the maximum number of columns of the tables of a sentence
