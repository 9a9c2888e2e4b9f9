package data

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/batch"
)

// TowerCache is a file with what a frozen tower gives for the images or the captions of a training set, a row
// of float32 for each. Rows are read one at a time, and never all in memory.
//
// The name of the file is a hash of what decides its rows: the tower, how its inputs are prepared, and which
// inputs they are. Each row begins with a check sum of its input's state and of the row, so a row of an image that
// changed, that was not written yet or that is damaged is missing. Several goroutines may use a cache.
type TowerCache struct {
	file   *os.File
	path   string
	rows   int
	width  int
	states [][towerHash]byte
}

var _ batch.Pool = (*TowerCache)(nil)

const (
	towerHash   = 16 // bytes of the check sum of a row
	towerSuffix = ".tower"
)

// TowerKey is what decides the rows of a cache besides the inputs.
type TowerKey struct {
	Side   string // image or text: the beginning of the name of the file
	Tower  []byte // a hash of the parameters and the settings of the tower
	Folder string // of the file, which is made
	Width  int    // of a row
	Max    int64  // largest size of the file in bytes
}

// OpenTowerCache opens the file of the rows of a tower, or makes it. Close it after use.
func OpenTowerCache(k TowerKey, in TowerInputs) (*TowerCache, error) {
	c := &TowerCache{rows: in.Rows, width: k.Width, states: make([][towerHash]byte, in.Rows)}
	if need := c.Bytes(); need > k.Max {
		return nil, fmt.Errorf("data: the features of %d %ss of %d numbers take %.1f GB: raise data.cache_max_gb, or "+
			"set data.cache_features = false", in.Rows, k.Side, k.Width, math.Ceil(float64(need)/1e8)/10)
	}
	names := sha256.New()
	fmt.Fprintf(names, "geoalign tower cache 1\x00%x\x00%d\x00%d\x00%s\x00", k.Tower, k.Width, in.Rows, cacheVersion)
	for i := range in.Rows {
		name, state := in.Item(i)
		fmt.Fprintf(names, "%s\x00", name)
		sum := sha256.Sum256([]byte(state))
		c.states[i] = [towerHash]byte(sum[:])
	}
	if err := os.MkdirAll(k.Folder, 0o777); err != nil {
		return nil, fmt.Errorf("data: folder of cached features: %w: set data.cache_dir to one that can be made", err)
	}
	c.path = filepath.Join(k.Folder, fmt.Sprintf("%s-%x%s", k.Side, names.Sum(nil)[:towerHash], towerSuffix))
	var err error
	if c.file, err = os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, fmt.Errorf("data: cached features: %w: set data.cache_dir to a folder that can be written", err)
	}
	return c, nil
}

// stride is the size of a row in the file.
func (c *TowerCache) stride() int64 { return int64(towerHash + 4*c.width) }

// Path is the file.
func (c *TowerCache) Path() string { return c.path }

// Rows implements batch.Pool.
func (c *TowerCache) Rows() int { return c.rows }

// Width implements batch.Pool.
func (c *TowerCache) Width() int { return c.width }

// Bytes is the size of the file when all rows are there.
func (c *TowerCache) Bytes() int64 { return int64(c.rows) * c.stride() }

// errNoRow says that a row is missing.
var errNoRow = errors.New("its features are not in the cache: the sample was bad when they were computed, or the file " +
	"was damaged since; start the run again to compute what is missing")

// Row implements batch.Pool. A row that is missing is an error.
func (c *TowerCache) Row(i int, dst []float32) error {
	b := make([]byte, c.stride())
	if _, err := c.file.ReadAt(b, int64(i)*c.stride()); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("data: cached features: %w", err)
	}
	if !c.valid(i, b) {
		return errNoRow
	}
	for k := range dst {
		dst[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[towerHash+4*k:]))
	}
	return nil
}

// valid says whether b is row i, whole and of the input in its present state.
func (c *TowerCache) valid(i int, b []byte) bool {
	return [towerHash]byte(b) == c.sum(i, b[towerHash:])
}

// sum is the check sum of a row of numbers, of its input in the present state.
func (c *TowerCache) sum(i int, numbers []byte) [towerHash]byte {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(i)))
	h.Write(c.states[i][:])
	h.Write(numbers)
	return [towerHash]byte(h.Sum(nil))
}

// Put writes row i.
func (c *TowerCache) Put(i int, row []float32) error {
	b := make([]byte, towerHash, c.stride())
	for _, v := range row {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	sum := c.sum(i, b[towerHash:])
	copy(b, sum[:])
	if _, err := c.file.WriteAt(b, int64(i)*c.stride()); err != nil {
		return fmt.Errorf("data: cached features: %w: make room in data.cache_dir, or set data.cache_features = false",
			err)
	}
	return nil
}

// Missing reads the file and lists the rows that are not there.
func (c *TowerCache) Missing() (list []int32, err error) {
	if c.rows == 0 {
		return nil, nil
	}
	chunk := max(1, int(1<<20/c.stride()))
	b := make([]byte, int64(chunk)*c.stride())
	for from := 0; from < c.rows; from += chunk {
		n, err := c.file.ReadAt(b, int64(from)*c.stride())
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("data: cached features: %w", err)
		}
		for i := from; i < min(from+chunk, c.rows); i++ {
			at := int64(i-from) * c.stride()
			if at+c.stride() > int64(n) || !c.valid(i, b[at:at+c.stride()]) {
				list = append(list, int32(i))
			}
		}
	}
	return list, nil
}

// Sync brings what was written to the disk.
func (c *TowerCache) Sync() error { return c.file.Sync() }

// Close closes the file.
func (c *TowerCache) Close() error { return c.file.Close() }
