// Images (b, channels, height, width) as rows of squares of PATCH pixels, and back: block p copies patch p. BACK: to images.
extern "C" __global__ void patchify(TO *to, const float *from, int channels, int height, int width) {
  int across = width / PATCH, per = height / PATCH * across;
  int b = blockIdx.x / per, p = blockIdx.x % per;
  size_t image = (size_t)b * channels * height * width + (size_t)(p / across * PATCH) * width + p % across * PATCH;
  int size = channels * PATCH * PATCH;
  size_t patch = (size_t)blockIdx.x * size;
  for (int e = threadIdx.x * PIECE; e < size; e += blockDim.x * PIECE) {
    int ch = e / (PATCH * PATCH), y = e / PATCH % PATCH, x = e % PATCH;
    size_t at = image + ((size_t)ch * height + y) * width + x;
    float v[PIECE];
    load_piece(v, from, BACK ? patch + e : at);
    store_piece(to, BACK ? at : patch + e, v);
  }
}
