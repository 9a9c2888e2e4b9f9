// Kernels of the alignment of words and patches, behind those of cross.cu: words are the queries r, patches the context c of a
// pair. sim are their products.

#define EACH_WORD(p, r) for (int r = p.r0 + threadIdx.x / WARP; r < p.r1; r += blockDim.x / WARP)
#define EACH_PATCH(p, c) for (int c = p.c0 + threadIdx.x; c < p.c1; c += blockDim.x)
#define AT(p, r, c) (p.at + (size_t)(r) * p.ld + (c))

// y = softmax of scale x over the patches of each word.
__device__ void softmax_patches(float *y, const float *x, const Pair &p, float scale) {
  EACH_WORD(p, r) {
    float top = -INFINITY_F, sum = 0;
    EACH_COLUMN(c, p.c0, p.c1) top = fmaxf(top, scale * x[AT(p, r, c)]);
    top = warp_max(top);
    EACH_COLUMN(c, p.c0, p.c1) sum += y[AT(p, r, c)] = expf(scale * x[AT(p, r, c)] - top);
    sum = 1 / warp_sum(sum);
    EACH_COLUMN(c, p.c0, p.c1) y[AT(p, r, c)] *= sum;
  }
}

// y = softmax of scale x over the words of each patch.
__device__ void softmax_words(float *y, const float *x, const Pair &p, float scale) {
  EACH_PATCH(p, c) {
    float top = -INFINITY_F, sum = 0;
    for (int r = p.r0; r < p.r1; r++) top = fmaxf(top, scale * x[AT(p, r, c)]);
    for (int r = p.r0; r < p.r1; r++) sum += y[AT(p, r, c)] = expf(scale * x[AT(p, r, c)] - top);
    for (int r = p.r0; r < p.r1; r++) y[AT(p, r, c)] /= sum;
  }
}

// The attention over_patches and over_words, and the weights of what is summed up of it: text for each patch, image for each
// word.
extern "C" __global__ void attend_both(float *over_patches, float *over_words, float *text, float *image, const float *sim,
    PAIRS, float scale, float context) {
  Pair p = PAIR;
  for (int k = threadIdx.x; k < ql * kl; k += blockDim.x) {
    int r = k / kl, c = k - r * kl;
    if (!p.has(r, c)) text[AT(p, r, c)] = image[AT(p, r, c)] = 0;
  }
  softmax_patches(over_patches, sim, p, scale);
  softmax_words(over_words, sim, p, scale);
  __syncthreads();
  softmax_words(text, over_patches, p, 1 / context);
  softmax_patches(image, over_words, p, 1 / context);
}

// The cosine of a token of length norm with its summary s, of x.s and |s|^2, 0 where either has the length 0.
__device__ __forceinline__ float summary_cosine(float product, float length, float norm) {
  float den = norm * sqrtf(fmaxf(0.f, length));
  return den <= EPS ? 0.f : product / den;
}

// |x| of token k of the sequence whose products with each other are gram (n, n).
__device__ __forceinline__ float norm_of(const float *gram, int n, int k) { return sqrtf(gram[(size_t)k * n + k]); }

// In shared memory, of each patch and of each word: x.s, |s|^2, and the cosine.
struct Cosines {
  float *products, *lengths, *values;
};

__device__ void cosines_of(Cosines patches, Cosines words, const Pair &p, const float *sim, const float *text,
    const float *text_mixed, const float *image, const float *image_mixed, const float *text_gram, const float *image_gram) {
  EACH_PATCH(p, c) {
    float d = 0, l = 0;
    for (int r = p.r0; r < p.r1; r++) {
      size_t at = AT(p, r, c);
      d += text[at] * sim[at], l += text[at] * text_mixed[at];
    }
    patches.products[c] = d, patches.lengths[c] = l, patches.values[c] = summary_cosine(d, l, norm_of(image_gram, p.kl, c));
  }
  EACH_WORD(p, r) {
    float d = 0, l = 0;
    EACH_COLUMN(c, p.c0, p.c1) {
      size_t at = AT(p, r, c);
      d += image[at] * sim[at], l += image[at] * image_mixed[at];
    }
    d = warp_sum(d), l = warp_sum(l);
    if (LANE > 0) continue;
    words.products[r] = d, words.lengths[r] = l, words.values[r] = summary_cosine(d, l, norm_of(text_gram, p.ql, r));
  }
  __syncthreads();
}

// log(sum or mean of exp(cosine / temperature)). A warp.
__device__ float log_exponents(const float *values, int lo, int hi, float temperature, int sum_all) {
  float top = -INFINITY_F, sum = 0;
  EACH_COLUMN(k, lo, hi) top = fmaxf(top, values[k] / temperature);
  top = warp_max(top);
  EACH_COLUMN(k, lo, hi) sum += expf(values[k] / temperature - top);
  return top + logf(warp_sum(sum)) - (sum_all ? 0.f : logf((float)(hi - lo)));
}

// The score of a pair. Each warp makes it.
__device__ float join(Cosines patches, Cosines words, const Pair &p, float temperature, int sum_all) {
  float a = log_exponents(patches.values, p.c0, p.c1, temperature, sum_all);
  float b = log_exponents(words.values, p.r0, p.r1, temperature, sum_all), top = fmaxf(a, b);
  return top + logf(expf(a - top) + expf(b - top));
}

__device__ __forceinline__ Cosines cosines_at(float *&room, int n) {
  Cosines c{room, room + n, room + 2 * n};
  room += 3 * n;
  return c;
}

extern "C" __global__ void align(float *scores, const float *sim, const float *text, const float *text_mixed,
    const float *image, const float *image_mixed, const float *text_grams, const float *image_grams, PAIRS, float temperature,
    int sum_all) {
  DYNAMIC_SHARED(float, room);
  float *rest = room;
  Cosines patches = cosines_at(rest, kl), words = cosines_at(rest, ql);
  Pair p = PAIR;
  cosines_of(patches, words, p, sim, text, text_mixed, image, image_mixed, text_grams + (size_t)p.local * ql,
      image_grams + (size_t)p.ki * kl * kl);
  if (threadIdx.x >= WARP) return;
  float score = p.empty() ? 0.f : join(patches, words, p, temperature, sum_all);
  if (LANE == 0) scores[p.score] = p.checked(score);
}

// Of the cosine with the gradient d: those of x.s and of |s|^2, in their places, and of |x|^2.
__device__ __forceinline__ float summary_slopes(Cosines c, int k, float d, float norm) {
  float den = norm * sqrtf(fmaxf(0.f, c.lengths[k]));
  if (den <= EPS) {
    c.products[k] = c.lengths[k] = 0;
    return 0;
  }
  float half = -d * c.values[k] / 2;
  c.products[k] = d / den, c.lengths[k] = half / c.lengths[k];
  return half / (norm * norm);
}

// w (dw - sum w dw) over the patches of each word, or over the words of each patch; dw (ql, kl) are in shared memory.
__device__ void back_patches(float *dw, const float *w, const Pair &p) {
  EACH_WORD(p, r) {
    float dot = 0;
    EACH_COLUMN(c, p.c0, p.c1) dot += w[AT(p, r, c)] * dw[r * p.kl + c];
    dot = warp_sum(dot);
    EACH_COLUMN(c, p.c0, p.c1) dw[r * p.kl + c] = w[AT(p, r, c)] * (dw[r * p.kl + c] - dot);
  }
  __syncthreads();
}

__device__ void back_words(float *dw, const float *w, const Pair &p) {
  EACH_PATCH(p, c) {
    float dot = 0;
    for (int r = p.r0; r < p.r1; r++) dot += w[AT(p, r, c)] * dw[r * p.kl + c];
    for (int r = p.r0; r < p.r1; r++) dw[r * p.kl + c] = w[AT(p, r, c)] * (dw[r * p.kl + c] - dot);
  }
  __syncthreads();
}

// Back from the gradient dy of scores: d gets those of sim, the mixed ones become those of G in a form of which their products
// with the weights are the sums, dwords (contexts, rows) and dpatches (queries, columns) get those of |x|^2. scale is that of
// both softmaxes.
extern "C" __global__ void align_slopes(D *d, float *text_mixed, float *image_mixed, float *dwords, float *dpatches,
    const float *sim, const float *over_patches, const float *over_words, const float *text, const float *image,
    const float *text_grams, const float *image_grams, const float *dy, PAIRS, int rows, int cols, int ldd, float scale,
    float temperature, int sum_all) {
  DYNAMIC_SHARED(float, room);
  float *dw = room, *rest = room + ql * kl;
  Cosines patches = cosines_at(rest, kl), words = cosines_at(rest, ql);
  Pair p = PAIR;
  const float *text_gram = text_grams + (size_t)p.local * ql, *image_gram = image_grams + (size_t)p.ki * kl * kl;
  dwords += (size_t)p.ki * rows + p.local, dpatches += (size_t)(p.local / ql) * cols + p.ki * kl;
  for (int r = threadIdx.x; r < ql; r += blockDim.x)
    if (r < p.r0 || r >= p.r1) dwords[r] = 0;
  for (int c = threadIdx.x; c < kl; c += blockDim.x)
    if (c < p.c0 || c >= p.c1) dpatches[c] = 0;
  cosines_of(patches, words, p, sim, text, text_mixed, image, image_mixed, text_gram, image_gram);
  float g = 0, score = 0, less_patches = 0, less_words = 0;
  if (!p.empty()) {
    g = dy[p.score] / temperature, score = join(patches, words, p, temperature, sum_all);
    if (!sum_all) less_patches = logf((float)(p.c1 - p.c0)), less_words = logf((float)(p.r1 - p.r0));
  }
  __syncthreads(); // all have read the cosines
  EACH_PATCH(p, c) dpatches[c] = summary_slopes(patches, c, g * expf(patches.values[c] / temperature - less_patches - score),
      norm_of(image_gram, kl, c));
  for (int r = p.r0 + threadIdx.x; r < p.r1; r += blockDim.x)
    dwords[r] = summary_slopes(words, r, g * expf(words.values[r] / temperature - less_words - score), norm_of(text_gram, ql, r));
  __syncthreads();
#define EACH_PLACE(k, r, c) for (int k = threadIdx.x, r, c; k < ql * kl && (r = k / kl, c = k - r * kl, true); k += blockDim.x)
  EACH_PLACE(k, r, c) if (p.has(r, c)) dw[k] = patches.products[c] * sim[AT(p, r,
      c)] + 2 * patches.lengths[c] * text_mixed[AT(p, r, c)];
  __syncthreads();
  back_words(dw, text, p);
  back_patches(dw, over_patches, p);
  // What came of the patches' cosines waits in text_mixed while dw takes the other part.
  EACH_PLACE(k, r, c) if (p.has(r, c)) {
    size_t at = AT(p, r, c);
    text_mixed[at] = dw[k];
    dw[k] = words.products[r] * sim[at] + 2 * words.lengths[r] * image_mixed[at];
  }
  __syncthreads();
  back_patches(dw, image, p);
  back_words(dw, over_words, p);
  d += (size_t)p.local * ldd + (size_t)p.ki * kl;
  EACH_PLACE(k, r, c) {
    size_t at = AT(p, r, c);
    float x = 0, of_text = 0, of_image = 0;
    if (p.has(r, c)) {
      x = patches.products[c] * text[at] + words.products[r] * image[at] + scale * (text_mixed[at] + dw[k]);
      of_text = patches.lengths[c] * text[at], of_image = words.lengths[r] * image[at];
    }
    text_mixed[at] = of_text, image_mixed[at] = of_image;
    d[(size_t)r * ldd + c] = from_float<D>(x);
  }
}
