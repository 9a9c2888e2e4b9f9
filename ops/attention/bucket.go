package attention

// Bucket is the bucket of RelativeBias, of n, of a key that lies after tokens behind its query; before it with a number
// below 0.
func Bucket(after, n, farthest int) int { return int(bucket(after, n, farthest)) }
