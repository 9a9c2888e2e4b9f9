// Kernels of vectors of similarity, behind those of cross.cu: texts are the queries, images the context of a pair, whose words
// and tokens are r and c.
//
// Pair i of a block has the nodes i (1 + ql) on, the whole first and then all words of the text. Before they are nodes, words
// of pairs are rows (nk, rows), those of all texts of the block for each image, and wholes are rows of pairs. Words that take
// no part are 0 in what products read and in gradients. Nodes that take no part have values (0 before the first step of reasoning,
// what the bias makes of 0 behind one), but kernels of pairs read those that do alone, and gradients of the others are 0. D is the
// type of what products read; where it is float, half is null: products read the values themselves.

// What to do for each node of a pair, by a warp.
#define EACH_NODE(j, p) for (int j = threadIdx.x / WARP; j <= p.ql; j += blockDim.x / WARP)

// Whether node j of a pair takes part.
__device__ __forceinline__ bool is_node(const Pair &p, int j) { return j == 0 || j > p.r0 && j <= p.r1; }

// The row of word r of a pair.
__device__ __forceinline__ size_t word_row(const Pair &p, int rows, int r) { return (size_t)p.ki * rows + p.local + r; }

// Of each pair the squares (e_l)^2 of its words, e_l = folded_l / (|context_l| + eps) - w_l, with lengths = |context_l|, and
// wholes = (x - y)^2 of its image and text. Rows of both have ldh values.
extern "C" __global__ void compare(D *squares, D *wholes, float *lengths, const float *folded, const float *contexts,
    const float *words, const float *images, const float *texts, PAIRS, int rows, int cols, int ldh) {
  Pair p = PAIR;
  images += (size_t)(k0 + p.ki) * cols, texts += (size_t)(q0 + p.local / ql) * cols, wholes += (size_t)blockIdx.x * ldh;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    float e = images[c] - texts[c];
    wholes[c] = from_float<D>(e * e);
  }
  EACH_ROW(r, p) {
    size_t row = word_row(p, rows, r);
    D *to = squares + row * ldh;
    if (r < p.r0 || r >= p.r1) {
      EACH_COLUMN(c, 0, cols) to[c] = from_float<D>(0.f);
      continue;
    }
    const float *context = contexts + row * cols, *fold = folded + row * cols, *word = words + (p.row + r) * cols;
    float sum = 0;
    EACH_COLUMN(c, 0, cols) sum += context[c] * context[c];
    float length = sqrtf(warp_sum(sum)), inverse = 1 / (length + EPS);
    if (LANE == 0) lengths[row] = length;
    EACH_COLUMN(c, 0, cols) {
      float e = fold[c] * inverse - word[c];
      to[c] = from_float<D>(e * e);
    }
  }
}

// Back through compare: with g = 2 e dsquares, dfolded are the gradients of folded contexts, dcontexts those of contexts
// through their lengths (null: both are one, and dfolded gets the sum), and dwords += -g over the images of the block. A block
// for each word of the block's texts.
extern "C" __global__ void compare_slopes(float *dwords, D *dfolded, D *dcontexts, const float *dsquares, const float *lengths,
    const float *folded, const float *contexts, const float *words, PAIRS, int rows, int cols, int ldh) {
  DYNAMIC_SHARED(float, sums); // (cols), each for the thread that has the channel
  __shared__ float room[33];
  int qi = blockIdx.x / ql, r = blockIdx.x - qi * ql;
  size_t at = ((size_t)q0 * ql + blockIdx.x) * cols;
  words += at, dwords += at;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sums[c] = 0;
  for (int ki = 0; ki < nk; ki++) {
    Pair p(qlengths, klengths, ql, kl, qfirst, kfirst, q0, k0, nk, ld, qstep, kstep, qi * nk + ki);
    size_t row = word_row(p, rows, r);
    D *to = dfolded + row * ldh, *also = dcontexts ? dcontexts + row * ldh : 0;
    if (r < p.r0 || r >= p.r1) {
      for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        to[c] = from_float<D>(0.f);
        if (also) also[c] = from_float<D>(0.f);
      }
      continue;
    }
    const float *context = contexts + row * cols, *fold = folded + row * cols, *d = dsquares + row * cols;
    float length = lengths[row], inverse = 1 / (length + EPS), dot = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
      float u = fold[c] * inverse;
      dot += 2 * d[c] * (u - words[c]) * u;
    }
    dot = block_sum(dot, room);
    float along = length > 0 ? -dot * inverse / length : 0.f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
      float g = 2 * d[c] * (fold[c] * inverse - words[c]), v = g * inverse, through = along * context[c];
      sums[c] -= g;
      to[c] = from_float<D>(also ? v : v + through);
      if (also) also[c] = from_float<D>(through);
    }
  }
  for (int c = threadIdx.x; c < cols; c += blockDim.x) dwords[c] += sums[c];
}

// dimages += 2 (x - y) dsquares over texts, dtexts -= that over images, for nk images and nq texts of the block. A block of
// threads for each image, and behind them for each text.
extern "C" __global__ void whole_slopes(float *dimages, float *dtexts, const float *dsquares, const float *images,
    const float *texts, int nk, int nq, int cols) {
  int i = blockIdx.x, own = i < nk ? i : i - nk, others = i < nk ? nq : nk;
  float *to = (i < nk ? dimages : dtexts) + (size_t)own * cols;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    float sum = 0;
    for (int o = 0; o < others; o++) {
      int ki = i < nk ? own : o, qi = i < nk ? o : own;
      sum += 2 * (images[(size_t)ki * cols + c] - texts[(size_t)qi * cols + c]) * dsquares[((size_t)qi * nk + ki) * cols + c];
    }
    to[c] += i < nk ? sum : -sum;
  }
}

// d = the gradients of the products s through the attention with these weights, whose gradients are dweights.
extern "C" __global__ void attend_slopes(D *d, const float *s, const float *weights, const float *dweights, PAIRS, int ldd,
    float scale) {
  DYNAMIC_SHARED(float, slopes); // (ql, kl), column (kl), along (kl)
  float *column = slopes + ql * kl, *along = column + kl;
  Pair p = PAIR;
  column_norms(column, p, s);
  EACH_ROW(r, p) {
    if (r < p.r0 || r >= p.r1) continue;
    size_t at = p.at + (size_t)r * ld;
    float dot = 0;
    EACH_COLUMN(c, p.c0, p.c1) dot += weights[at + c] * dweights[at + c];
    dot = warp_sum(dot);
    EACH_COLUMN(c, p.c0, p.c1) slopes[r * kl + c] = weights[at + c] * (dweights[at + c] - dot);
  }
  __syncthreads();
  to_products(d, p, s, slopes, column, along, scale, ldd);
}

// nodes = what the layers have made of words and wholes, at unit length, with lengths before; 0 where none is. Rows of half
// have ldh values.
extern "C" __global__ void unite(float *nodes, D *half, float *lengths, const float *words, const float *wholes, PAIRS,
    int rows, int size, int ldh) {
  Pair p = PAIR;
  EACH_NODE(j, p) {
    size_t node = (size_t)blockIdx.x * (ql + 1) + j;
    const float *x = j == 0 ? wholes + (size_t)blockIdx.x * size : words + word_row(p, rows, j - 1) * size;
    bool takes = is_node(p, j);
    float sum = 0;
    if (takes) EACH_COLUMN(c, 0, size) sum += x[c] * x[c];
    float length = sqrtf(warp_sum(sum)), inverse = 1 / (length + EPS);
    if (LANE == 0) lengths[node] = length;
    EACH_COLUMN(c, 0, size) {
      float v = takes ? x[c] * inverse : 0.f;
      nodes[node * size + c] = v;
      if (half) half[node * ldh + c] = from_float<D>(v);
    }
  }
}

// Back through unite, from the gradients dnodes. Rows of the halves have ldh values.
extern "C" __global__ void unite_slopes(float *words, float *wholes, D *half_words, D *half_wholes, const float *nodes,
    const float *dnodes, const float *lengths, PAIRS, int rows, int size, int ldh) {
  Pair p = PAIR;
  EACH_NODE(j, p) {
    size_t node = (size_t)blockIdx.x * (ql + 1) + j, at = node * size;
    size_t row = j == 0 ? blockIdx.x : word_row(p, rows, j - 1);
    float *to = (j == 0 ? wholes : words) + row * size;
    D *half = j == 0 ? half_wholes : half_words;
    bool takes = is_node(p, j);
    float dot = 0, length = lengths[node];
    EACH_COLUMN(c, 0, size) dot += nodes[at + c] * dnodes[at + c];
    dot = warp_sum(dot);
    float inverse = 1 / (length + EPS), along = length > 0 ? -dot / length : 0.f;
    EACH_COLUMN(c, 0, size) {
      float v = takes ? inverse * dnodes[at + c] + along * nodes[at + c] : 0.f;
      to[c] = v;
      if (half) half[row * ldh + c] = from_float<D>(v);
    }
  }
}

extern "C" __global__ void add_columns(float *parts, const D *x, int rows, int cols, int64 ld, int add) {
  column_parts(parts, x, 0, rows, cols, ld, add);
}

// sums (cols) of n parts.
extern "C" __global__ void sum_columns(float *sums, const float *parts, int n, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  float sum = 0;
  for (int k = 0; k < n; k++) sum += parts[(size_t)k * cols + c];
  sums[c] = sum;
}
