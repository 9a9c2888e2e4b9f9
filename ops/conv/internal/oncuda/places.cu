// Pooling over places, and images as rows of places. A thread makes one value of the result.

// y (B*Ho*Wo, C) and at, the largest value of each channel of x (B*H*W, C) in each window and its place within the image: of equal
// values the first, and the last NaN before all.
extern "C" __global__ void __launch_bounds__(256)
    max_pool(float *y, int *at, const float *x, int64 values, int height, int width, int channels, int out_height, int out_width,
        int kernel, int stride, int pad) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= values) return;
  int64 row = i / channels;
  int c = (int)(i - row * channels), out = out_height * out_width, p = (int)(row % out);
  x += row / out * height * width * channels + c;
  int top = p / out_width * stride - pad, left = p % out_width * stride - pad, place = -1;
  float largest = 0.f;
  for (int u = max(top, 0); u < min(top + kernel, height); u++)
    for (int v = max(left, 0); v < min(left + kernel, width); v++) {
      float f = x[(size_t)(u * width + v) * channels];
      if (place < 0 || f > largest || f != f) largest = f, place = u * width + v;
    }
  y[i] = largest;
  at[i] = place;
}

// dx (B*H*W, C): the sum of dy over the windows whose largest value a place has, in rising order.
extern "C" __global__ void __launch_bounds__(256)
    max_pool_dx(float *dx, const int *at, const float *dy, int64 values, int height, int width, int channels, int out_height,
        int out_width, int kernel, int stride, int pad) {
  int64 k = (int64)blockIdx.x * 256 + threadIdx.x;
  if (k >= values) return;
  int64 row = k / channels;
  int c = (int)(k - row * channels), p = (int)(row % (height * width));
  size_t first = row / (height * width) * out_height * out_width * channels + c;
  int y = p / width + pad, z = p % width + pad; // window i has it where 0 <= y - i*stride < kernel
  int top = y < kernel ? 0 : (y - kernel) / stride + 1, left = z < kernel ? 0 : (z - kernel) / stride + 1;
  float sum = 0.f;
  for (int i = top; i <= min(y / stride, out_height - 1); i++)
    for (int j = left; j <= min(z / stride, out_width - 1); j++) {
      size_t w = first + (size_t)(i * out_width + j) * channels;
      if (at[w] == p) sum += dy[w];
    }
  dx[k] = sum;
}

// rows (B*places, C) = planes (B, C, places).
extern "C" __global__ void __launch_bounds__(256) from_planes(float *rows, const float *planes, int64 values, int channels, int places) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= values) return;
  int64 row = i / channels, image = row / places;
  int c = (int)(i - row * channels), p = (int)(row - image * places);
  rows[i] = planes[(image * channels + c) * places + p];
}

// The way back.
extern "C" __global__ void __launch_bounds__(256) to_planes(float *planes, const float *rows, int64 values, int channels, int places) {
  int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
  if (i >= values) return;
  int64 plane = i / places, image = plane / channels;
  int p = (int)(i - plane * places), c = (int)(plane - image * channels);
  planes[i] = rows[(image * places + p) * channels + c];
}
