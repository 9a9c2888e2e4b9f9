// Entropic transport plans of scores and of a target, and their divergence: see transport.Plan and PlanDivergence. Plans are in
// the log domain, with potentials in units of eps,
//
//   log P_ij = S_ij/eps + f_i + g_j
//   a round: f_i -= log(n sum_j P_ij), then g_j -= log(m sum_i P_ij)
//
// of which the host has the same numbers in another form: here an exponential of a float32 similarity takes less than reading a
// double. Plan 0 is that of the scores, plan 1 that of the target; blockIdx.y says which.

// What kernels are given: work holds the potentials and what rounds say of themselves; scales are 1/eps.
#define PLANS const float *scores, const float *target, double *work, int n, int m, int rounds, double scale, double target_scale, \
              double tolerance
#define PLAN(which) Plan(scores, target, work, n, m, rounds, scale, target_scale, tolerance, which)

#define WARP_OF (threadIdx.x / WARP)
#define WARPS (blockDim.x / WARP)

struct Plan {
  const float *s;
  double *f, *g;  // (n), (m)
  uint64 *off;    // (rounds): the largest relative error of a row sum before the round, as bits; 0 where no round was needed
  double *last;   // that of the last round
  int n, m;
  double scale, tolerance;
  __device__ Plan(PLANS, int which)
      : s(which ? target : scores), n(n), m(m), scale(which ? target_scale : scale), tolerance(tolerance) {
    f = work + which * ((size_t)n + m + rounds + 1), g = f + n, last = g + m, off = reinterpret_cast<uint64 *>(last + 1);
  }
  __device__ double at(int i, int j) const { return s[(size_t)i * m + j] * scale; }
  // Whether round k, not the first, is not needed: nor are those after it.
  __device__ bool ended(int k) const { return __longlong_as_double(off[k - 1]) < tolerance; }
};

// f of rows i, i + step, .., a warp each. begin: the first round, in which potentials are 0, and sums are relative to the largest of
// a row; in others a plan has no numbers that are too large, since its columns sum to 1/m. Returns the largest relative error of
// a row sum before as bits: they are in the order of the numbers, with NaN above all.
__device__ uint64 rows(const Plan &p, bool begin, int i, int step) {
  uint64 worst = 0;
  for (; i < p.n; i += step) {
    double f = 0, sum = 0;
    if (begin) {
      double top = -INFINITY_F;
      for (int j = LANE; j < p.m; j += WARP) top = fmax(top, p.at(i, j));
      f = -warp_max_double(top);
      for (int j = LANE; j < p.m; j += WARP) sum += exp(p.at(i, j) + f);
    } else {
      f = p.f[i];
#pragma unroll 4
      for (int j = LANE; j < p.m; j += WARP) sum += exp(p.at(i, j) + f + p.g[j]);
    }
    sum = p.n * warp_sum_double(sum);
    f -= log(sum);
    if (LANE == 0) p.f[i] = f;
    worst = max(worst, (uint64)__double_as_longlong(fabs(begin ? expm1(-f) : sum - 1)));
  }
  return worst;
}

// g of 32 columns from j on, by all threads of a block: a lane has a column, and warps share the rows.
__device__ void columns(const Plan &p, bool begin, int j) {
  __shared__ double room[WARP][WARP];
  j += LANE;
  double g = 0, sum = 0;
  if (begin) {
    double top = -INFINITY_F;
    if (j < p.m)
      for (int i = WARP_OF; i < p.n; i += WARPS) top = fmax(top, p.at(i, j) + p.f[i]);
    room[WARP_OF][LANE] = top;
    __syncthreads();
    for (int w = 0; w < WARPS; w++) top = fmax(top, room[w][LANE]);
    __syncthreads();
    g = -top;
  } else if (j < p.m) {
    g = p.g[j];
  }
  if (j < p.m)
#pragma unroll 4
    for (int i = WARP_OF; i < p.n; i += WARPS) sum += exp(p.at(i, j) + p.f[i] + g);
  room[WARP_OF][LANE] = sum;
  __syncthreads();
  if (WARP_OF == 0 && j < p.m) {
    for (int w = 1; w < WARPS; w++) sum += room[w][LANE];
    p.g[j] = g - log(p.m * sum);
  }
  __syncthreads(); // room is used again
}

// Before the first round.
extern "C" __global__ void plan_begin(PLANS) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < rounds) PLAN(blockIdx.y).off[k] = 0;
}

// The rows of a round, a warp each. It returns at once where the plan is as wanted.
extern "C" __global__ void plan_rows(PLANS, int round) {
  Plan p = PLAN(blockIdx.y);
  if (round > 0 && p.ended(round)) return;
  uint64 worst = rows(p, round == 0, blockIdx.x * WARPS + WARP_OF, gridDim.x * WARPS);
  if (LANE == 0) atomicMax(p.off + round, worst);
}

// Its columns, a block for 32.
extern "C" __global__ void plan_columns(PLANS, int round) {
  Plan p = PLAN(blockIdx.y);
  if (round > 0 && p.ended(round)) return;
  columns(p, round == 0, blockIdx.x * WARP);
  if (blockIdx.x == 0 && threadIdx.x == 0) *p.last = __longlong_as_double(p.off[round]);
}

// The rounds from one on, of which those before are made, by a block for each plan. It ends where the plan is as wanted.
extern "C" __global__ void __launch_bounds__(1024) plan_rounds(PLANS, int from) {
  __shared__ uint64 room;
  Plan p = PLAN(blockIdx.y);
  double off = from > 0 ? *p.last : 0;
  for (int k = from; k < rounds && (k == 0 || !(off < tolerance)); k++) {
    if (threadIdx.x == 0) room = 0;
    __syncthreads();
    uint64 worst = rows(p, k == 0, WARP_OF, WARPS);
    if (LANE == 0) atomicMax(&room, worst);
    __syncthreads();
    off = __longlong_as_double(room);
    for (int j = 0; j < m; j += WARP) columns(p, k == 0, j);
    if (threadIdx.x == 0) *p.last = off;
  }
}

// sums (n) = sum_j P*_ij log(P*_ij / P_ij), and its gradient (P - P*)/eps in the scores. A block for each row.
extern "C" __global__ void plan_compare(double *sums, float *dscores, PLANS) {
  Plan own = PLAN(0), fixed = PLAN(1);
  int i = blockIdx.x;
  double sum = 0;
  for (int j = threadIdx.x; j < m; j += blockDim.x) {
    double a = fixed.at(i, j) + fixed.f[i] + fixed.g[j], b = own.at(i, j) + own.f[i] + own.g[j], t = exp(a);
    if (t != 0) sum += t * (a - b);
    dscores[(size_t)i * m + j] = (exp(b) - t) * scale;
  }
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) sums[i] = sum;
}

// loss = the sum of sums (n), off = the error of the rows of the scores' plan. One block.
extern "C" __global__ void plan_loss(float *loss, float *off, const double *sums, PLANS) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += sums[i];
  sum = block_sum_double(sum);
  if (threadIdx.x == 0) *loss = sum, *off = *PLAN(0).last;
}
