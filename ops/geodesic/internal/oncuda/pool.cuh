// The columns of a pool: a queue of `size` rows with a batch in the place of its rows [pointer, pointer+batch) mod size, of which the
// first `cols` exist. A pointer outside [0, size) or cols outside [0, size], errors of the run on the host, make it not valid.
struct pool_state {
  int pointer, batch, size, cols;
  bool valid;

  // The row of the batch that column j is; not below `batch`: it is row j of the queue.
  __device__ __forceinline__ int key(int j) const { return j >= pointer ? j - pointer : j - pointer + size; }

  template <class T> __device__ __forceinline__ T of(const T *keys, const T *queue, int j) const {
    int r = key(j);
    return r < batch ? keys[r] : queue[j];
  }

  __device__ __forceinline__ const float *row(const float *keys, const float *queue, int j, int width) const {
    int r = key(j);
    return r < batch ? keys + (size_t)r * width : queue + (size_t)j * width;
  }
};

__device__ __forceinline__ pool_state read_pool(const int *pointer, const int *cols, int batch, int size) {
  pool_state s = {*pointer, batch, size, cols ? *cols : size, true};
  s.valid = s.pointer >= 0 && s.pointer < size && s.cols >= 0 && s.cols <= size;
  if (!s.valid) s.pointer = 0, s.cols = 0;
  return s;
}
