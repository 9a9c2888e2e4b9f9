package features

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/torch"
	"github.com/geoalign/geoalign/internal/words"
)

// Described is what a file of features holds.
type Described struct {
	Holds  string // in words
	Summed bool   // the file has checksums of what it holds
}

// Describe reads the header of a file of features. With whole it reads all of it, compares what has a checksum with it,
// and fails where something is damaged.
func Describe(ctx context.Context, path string, whole bool) (d Described, err error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npy":
		d.Holds, err = describeArray(path)
	case ".npz":
		d.Holds, err = describeZip(ctx, path, whole)
		d.Summed = true
	case ".safetensors":
		return describeSafetensors(ctx, path, whole)
	case ".pt", ".pth":
		return describeTorch(ctx, path, whole)
	case ".parquet":
		d.Holds, err = describeParquet(path)
	default:
		return d, fmt.Errorf(
			"features: %s: a file of features must end in .npy, .npz, .safetensors, .pt, .pth or .parquet", path)
	}
	return d, err
}

// describeArray is Describe of a .npy file, whatever its numbers.
func describeArray(path string) (string, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h, err := readNPYHeader(f)
	if err != nil {
		return "", err
	}
	if m, err := OpenMatrix(path, ""); err == nil {
		return fmt.Sprintf("%s of %s %s", words.Count(m.Rows(), "row"), words.Thousands(m.Width()), m.Type()), m.Close()
	} else if _, known := npyTypes[h.descr]; known && len(h.shape) == 2 {
		return "", err // which may be cut short
	}
	return fmt.Sprintf("an array %v of type %s, %d bytes", h.shape, h.descr, size-h.start), nil
}

// describeZip is Describe of an archive, of which every member has a checksum.
func describeZip(ctx context.Context, path string, whole bool) (string, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	z, err := zip.NewReader(f, size)
	if err != nil {
		return "", fmt.Errorf("its directory, at the end, cannot be read: %w", err)
	}
	var names []string
	for _, m := range z.File {
		names = append(names, strings.TrimSuffix(m.Name, ".npy"))
		if whole {
			if err := checkZipMember(ctx, m); err != nil {
				return "", err
			}
		}
	}
	return "the arrays " + list(names), nil
}

// checkZipMember reads a member and compares it with its checksum.
func checkZipMember(ctx context.Context, m *zip.File) error {
	r, err := m.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	defer r.Close()
	h, b, n := crc32.NewIEEE(), make([]byte, 1<<20), uint64(0)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := r.Read(b)
		h.Write(b[:k])
		n += uint64(k)
		switch {
		case n > m.UncompressedSize64:
			return fmt.Errorf("%s has more bytes than its directory says", m.Name)
		case err == io.EOF && n < m.UncompressedSize64:
			return fmt.Errorf("%s has %d bytes, and its directory says %d", m.Name, n, m.UncompressedSize64)
		case err == io.EOF:
			return checkCRC(m, h.Sum32())
		case err != nil && !errors.Is(err, zip.ErrChecksum):
			return fmt.Errorf("%s: %w", m.Name, err)
		case err != nil:
			return checkCRC(m, h.Sum32())
		}
	}
}

func describeSafetensors(ctx context.Context, path string, whole bool) (d Described, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	var names []string
	for _, t := range f.Tensors() {
		names = append(names, t.Name)
	}
	d = Described{"the tensors " + list(names), f.Metadata()[safetensors.SumKey] != ""}
	if d.Summed && whole {
		err = safetensors.CheckFile(ctx, path)
	}
	return d, err
}

// describeTorch is Describe of a file of torch.save, which is an archive from version 1.6 of PyTorch on.
func describeTorch(ctx context.Context, path string, whole bool) (d Described, err error) {
	f, err := torch.Open(path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	var names []string
	for _, t := range f.Tensors() {
		names = append(names, t.Name)
	}
	d.Holds = "the tensors " + list(names)
	if len(names) == 1 && names[0] == "" {
		d.Holds = "a tensor"
	}
	if r, err := zip.OpenReader(path); err == nil {
		d.Summed = true
		if err := r.Close(); err != nil {
			return d, err
		}
	}
	if d.Summed && whole {
		_, err = describeZip(ctx, path, true)
	}
	return d, err
}

// describeParquet looks at both ends of a file: its pages have no checksums that writers agree on.
func describeParquet(path string) (string, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const magic = "PAR1"
	for _, at := range []int64{0, size - int64(len(magic))} {
		b := make([]byte, len(magic))
		if _, err := f.ReadAt(b, max(at, 0)); err != nil || string(b) != magic {
			return "", errors.New("it is not a .parquet file, or it was cut short")
		}
	}
	return fmt.Sprintf("a .parquet file of %d bytes", size), nil
}
