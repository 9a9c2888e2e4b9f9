// Bits of dropout, the same as vector.DropoutBits makes: words of SplitMix64 (Steele, Lea and Flood 2014, figure 17), which are a
// function of their number alone.

#define GOLDEN 0x9e3779b97f4a7c15ull

__device__ __forceinline__ uint64 mix64(uint64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// The word of 32 bits that a key has at a place: bit 4 w + l is one where 16-bit lane l of random word w is below the threshold.
// Lanes are compared where they lie, the upper one of 32 bits with what is below it, the lower one once it is shifted up.
__device__ __forceinline__ uint32 dropout_word(uint64 key, uint64 place, uint32 threshold) {
  if (threshold == 0) return 0;
  if (threshold == 65536) return 0xffffffffu;
  uint64 state = mix64(key) + place * 8 * GOLDEN;
  uint32 bits = 0, limit = threshold << 16;
#pragma unroll
  for (int w = 0; w < 8; w++) {
    state += GOLDEN;
    uint64 z = mix64(state);
    uint32 low = (uint32)z, high = (uint32)(z >> 32);
    if (low << 16 < limit) bits |= 1u << (4 * w);
    if (low < limit) bits |= 2u << (4 * w);
    if (high << 16 < limit) bits |= 4u << (4 * w);
    if (high < limit) bits |= 8u << (4 * w);
  }
  return bits;
}

// The key of a step (low and high word) and that of a place in the graph.
__device__ __forceinline__ uint64 site_key(const uint32 *key, uint64 site) {
  return ((uint64)key[0] | (uint64)key[1] << 32) + site;
}

// n words from that of row key[2] on, where the key has a third value; words are those of a row.
extern "C" __global__ void dropout_bits(uint32 *bits, const int *key, int third, uint64 site, uint32 threshold, int words,
    int64 n) {
  int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  int64 first = third ? (int64)key[2] * words : 0;
  bits[at] = dropout_word(site_key((const uint32 *)key, site), (uint64)(first + at), threshold);
}

// n words in runs of part that follow each other in the whole too: run i of rank share[0] of share[1] is run i share[1] +
// share[0] of the whole, or with places it is run places[i].
extern "C" __global__ void dropout_share(uint32 *bits, const int *key, const int *share, const int *places, uint64 site,
    uint32 threshold, int64 part, int64 n) {
  int64 at = (int64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  int64 i = at / part;
  int64 run = places ? (int64)places[i] : i * share[1] + share[0];
  bits[at] = dropout_word(site_key((const uint32 *)key, site), (uint64)(run * part + at - i * part), threshold);
}

// y = x scale where the bit is one, else 0, even if x is not finite there; added to y where ACCUMULATE is 1. y may be x.
#if DROPOUT
extern "C" __global__ void dropout(Y *y, const float *x, const uint32 *bits, int rows, int cols, float scale) {
  int row = WARP_ROW;
  if (row >= rows) return;
  const uint32 *words = bits + (size_t)row * ((cols + 31) / 32);
  size_t at = (size_t)row * cols;
  float v[8][PIECE], out[8][PIECE] = {};
  uint32 kept[8];
#pragma unroll
  EACH_PIECE(k, col, cols) { // all is loaded before the first store, behind which no load may go
    load_piece(v[k], x + at, col);
    kept[k] = piece_bits(words, col);
#if ACCUMULATE
    load_piece(out[k], y + at, col);
#endif
  }
#pragma unroll
  EACH_PIECE(k, col, cols) {
#pragma unroll
    for (int j = 0; j < PIECE; j++)
      if (kept[k] >> j & 1) out[k][j] = ACCUMULATE ? fmaf(scale, v[k][j], out[k][j]) : scale * v[k][j];
    store_piece(y + at, col, out[k]);
  }
}
#endif
