package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/train/runlog"
)

// Data identifies the data that a run was trained and evaluated on: data.json of its folder.
type Data struct {
	Rule   int               `json:"rule"` // data.EntriesRule
	Splits map[string]*Split `json:"splits"`
}

// Split identifies a split. Sums are those of package identity.
type Split struct {
	Samples int `json:"samples"`
	// of what the lists say of the samples, in their order: data.Entries.Sum
	List     identity.Sum `json:"list"`
	Files    []File       `json:"files,omitempty"` // that the configuration names
	Contents Contents     `json:"contents"`        // of files beside the lists
}

// File is a file, by its path from data.root where it lies there.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Contents is all files that hold pictures or features.
type Contents struct {
	Files int          `json:"files"`
	Bytes int64        `json:"bytes"`
	Sum   identity.Sum `json:"sum,omitzero"` // of what they hold, in their order; absent: not all were read yet
}

// splitSums are the short sums of a split: data.sums of a run folder, by which a difference is described.
type splitSums struct {
	List    identity.Sum // of the SplitRecord
	Samples []identity.Sample
	Files   []fileSum // of contents
}

// fileSum is a file that holds pictures or features.
type fileSum struct {
	Name uint64 // sum of its path from data.root
	Size int64  // -1: it is not there
	Sum  uint64 // of what it holds, 0: not read yet
}

// mostSums is the number of samples, and of files, above which a run folder does not keep short sums of each.
const mostSums = 1 << 20

// sum is that of all files; zero where one was not read.
func sumOfFiles(list []fileSum) (sum identity.Sum, total int64) {
	b := make([]byte, 0, 24*len(list))
	whole := true
	for _, f := range list {
		b = f.append(b)
		total += max(f.Size, 0)
		whole = whole && (f.Sum != 0 || f.Size < 0)
	}
	if whole {
		sum = identity.OfBytes(b)
	}
	return sum, total
}

func (f fileSum) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, f.Name)
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Size))
	return binary.LittleEndian.AppendUint64(b, f.Sum)
}

// Read reads that of a run folder. One that lacks it, as of an earlier version, is fs.ErrNotExist.
func Read(dir string) (r Data, err error) {
	path := filepath.Join(dir, runlog.DataFile)
	text, err := files.Read(path, files.MaxRecord)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s is damaged: %w", path, err)
	}
	for name, s := range r.Splits {
		if s == nil {
			return r, fmt.Errorf("%s is damaged: it says nothing of the split %.40q", path, name)
		}
	}
	if r.Rule != data.EntriesRule {
		return r, fmt.Errorf("%s was written by the rule %d, which this version does not know: %w", path, r.Rule,
			fs.ErrNotExist)
	}
	return r, nil
}

func (r Data) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(dir, runlog.DataFile), append(text, '\n'))
}

const sumsMagic = "geoalign data 1\n"

// writeSums writes data.sums of a run folder.
func writeSums(dir string, splits map[string]splitSums) error {
	b := []byte(sumsMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(splits)))
	for _, name := range slices.Sorted(maps.Keys(splits)) {
		s := splits[name]
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
		b = append(b, s.List[:]...)
		b = binary.AppendUvarint(b, uint64(len(s.Samples)))
		for _, x := range s.Samples {
			b = binary.LittleEndian.AppendUint64(b, x.Name)
			b = binary.LittleEndian.AppendUint64(b, x.Rest)
		}
		b = binary.AppendUvarint(b, uint64(len(s.Files)))
		for _, f := range s.Files {
			b = f.append(b)
		}
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return files.Replace(filepath.Join(dir, runlog.SumsFile), b)
}

// readSums reads data.sums of a run folder. One that cannot be read describes nothing.
func readSums(dir string) map[string]splitSums {
	const most = len(sumsMagic) + 8 + 3*(mostSums*(16+24)+1<<10)
	text, err := files.Read(filepath.Join(dir, runlog.SumsFile), int64(most))
	if err != nil {
		return nil
	}
	all, err := parseSums(text)
	if err != nil {
		return nil
	}
	return all
}

var errSums = errors.New("it is damaged")

// parseSums reads the bytes of data.sums.
func parseSums(text []byte) (map[string]splitSums, error) {
	end := len(text) - 4
	if end < len(sumsMagic) || string(text[:len(sumsMagic)]) != sumsMagic ||
		crc32.Checksum(text[:end], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(text[end:]) {
		return nil, errSums
	}
	r := bytes.NewReader(text[len(sumsMagic):end])
	var n uint32
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return nil, errSums
	}
	all := map[string]splitSums{}
	for range n {
		var s splitSums
		name := make([]byte, count(r, 1))
		if _, err := io.ReadFull(r, name); err != nil {
			return nil, errSums
		}
		if _, err := io.ReadFull(r, s.List[:]); err != nil {
			return nil, errSums
		}
		s.Samples = make([]identity.Sample, count(r, 16))
		for i := range s.Samples {
			s.Samples[i] = identity.Sample{Name: number(r), Rest: number(r)}
		}
		s.Files = make([]fileSum, count(r, 24))
		for i := range s.Files {
			s.Files[i] = fileSum{number(r), int64(number(r)), number(r)}
		}
		all[string(name)] = s
	}
	if r.Len() > 0 {
		return nil, errSums
	}
	return all, nil
}

// count reads how many things of some bytes follow, no more than there are bytes for.
func count(r *bytes.Reader, size int) int {
	n, err := binary.ReadUvarint(r)
	if err != nil || n > math.MaxInt32 {
		return 0 // and what follows does not fit
	}
	return min(int(n), r.Len()/size)
}

func number(r *bytes.Reader) uint64 {
	var b [8]byte
	_, _ = io.ReadFull(r, b[:]) // count has seen that they are there
	return binary.LittleEndian.Uint64(b[:])
}
