// Kernels of the filtration of the nodes of each pair, behind those of vectors.cu and vectors_graph.cu.

// What filtration makes of the nodes of a pair, in shared memory: their gates a (1 + ql), and end (size) = f = unit(z) with
// z = sum_j a_j n_j / sum.
struct Filtered {
  float *gates, *end;
  float sum, length, score;
};

// All threads. gate and score are the weights of layers, with a bias each or null.
__device__ void filter_nodes(Filtered &f, const Pair &p, const float *nodes, const float *gate, const float *gate_bias,
    const float *score, const float *score_bias, int size, float *room) {
  float bias = gate_bias ? *gate_bias : 0.f, own = 0;
  EACH_NODE(j, p) {
    float dot = 0;
    EACH_COLUMN(c, 0, size) dot += nodes[(size_t)j * size + c] * gate[c];
    dot = warp_sum(dot);
    if (LANE == 0) f.gates[j] = is_node(p, j) ? sigmoid(dot + bias) : 0.f;
  }
  __syncthreads();
  for (int j = threadIdx.x; j <= p.ql; j += blockDim.x) own += f.gates[j];
  f.sum = block_sum(own, room) + EPS;
  own = 0;
  for (int c = threadIdx.x; c < size; c += blockDim.x) {
    float z = 0;
    for (int j = 0; j <= p.ql; j++) // those that take no part are 0
      if (is_node(p, j)) z += f.gates[j] / f.sum * nodes[(size_t)j * size + c];
    f.end[c] = z, own += z * z;
  }
  f.length = sqrtf(block_sum(own, room));
  for (int c = threadIdx.x; c < size; c += blockDim.x) f.end[c] *= 1 / (f.length + EPS);
  f.score = score_of(f.end, score, score_bias, size, room);
}

extern "C" __global__ void filter(float *scores, const float *nodes, const float *gate, const float *gate_bias,
    const float *score, const float *score_bias, PAIRS, int size) {
  DYNAMIC_SHARED(float, shared); // gates (1 + ql), end (size)
  __shared__ float room[33];
  Pair p = PAIR;
  Filtered f{shared, shared + ql + 1};
  filter_nodes(f, p, nodes + (size_t)blockIdx.x * (ql + 1) * size, gate, gate_bias, score, score_bias, size, room);
  if (threadIdx.x == 0) scores[p.score] = p.checked(p.empty() ? 0.f : f.score);
}

// Back from the gradient dy of scores: those of nodes, dgates (nodes) of the logits of gates, and dlogits (pairs) of the score,
// with ends (pairs, size) = f. What flows through the sum of the gates is left out: but for the
// epsilon of unit f does not see a factor of z.
extern "C" __global__ void filter_slopes(float *dnodes, float *dgates, float *dlogits, float *ends, const float *nodes,
    const float *gate, const float *gate_bias, const float *score, const float *score_bias, const float *dy, PAIRS, int size) {
  DYNAMIC_SHARED(float, shared); // gates (1 + ql), end (size)
  __shared__ float room[33];
  Pair p = PAIR;
  Filtered f{shared, shared + ql + 1};
  size_t at = (size_t)blockIdx.x * (ql + 1);
  nodes += at * size, dnodes += at * size, dgates += at, ends += (size_t)blockIdx.x * size;
  filter_nodes(f, p, nodes, gate, gate_bias, score, score_bias, size, room);
  float g = p.empty() ? 0.f : dy[p.score] * f.score * (1 - f.score), dot = 0;
  if (threadIdx.x == 0) dlogits[blockIdx.x] = g;
  for (int c = threadIdx.x; c < size; c += blockDim.x) ends[c] = f.end[c], dot += f.end[c] * g * score[c];
  dot = block_sum(dot, room);
  float along = f.length > 0 ? -dot / f.length : 0.f, inverse = 1 / (f.length + EPS);
  for (int c = threadIdx.x; c < size; c += blockDim.x) f.end[c] = inverse * g * score[c] + along * f.end[c]; // of z
  __syncthreads();
  EACH_NODE(j, p) {
    bool takes = is_node(p, j);
    float a = f.gates[j], d = 0;
    if (takes) EACH_COLUMN(c, 0, size) d += f.end[c] * nodes[(size_t)j * size + c];
    d = warp_sum(d) / f.sum * a * (1 - a);
    if (LANE == 0) dgates[j] = d;
    EACH_COLUMN(c, 0, size) dnodes[(size_t)j * size + c] = takes ? a / f.sum * f.end[c] + d * gate[c] : 0.f;
  }
}
