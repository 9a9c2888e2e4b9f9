// The rows sorted by key sequence, equal ones in order, and where each sequence's begin (N+1), by counting for each of
// them what comes before it.
extern "C" __global__ void sort_rows(int *order, int *starts, const int *index, int rows, int seqs) {
  __shared__ int part[256];
  int at = blockIdx.x * 256 + threadIdx.x, before = 0; // a row, or R and a sequence
  int mine = at < rows ? index[at] : at - rows;
  for (int first = 0; first < rows; first += 256) {
    int n = min(256, rows - first);
    __syncthreads();
    if ((int)threadIdx.x < n) part[threadIdx.x] = index[first + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < n; i++) before += part[i] < mine || (part[i] == mine && first + i < at && at < rows);
  }
  if (at < rows) order[before] = at;
  else if (at - rows <= seqs) starts[at - rows] = before;
}
