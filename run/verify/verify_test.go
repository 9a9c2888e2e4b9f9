package verify

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/search"
)

// summed is a file of tensors with a checksum.
func summed(t testing.TB, meta map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.WriteSummed(&b, []safetensors.Tensor{{Name: gallery.Image, Shape: []int{3, 2}, Data: []float32{1, 2, 3, 4, 5, 6}}}, meta); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func crcOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// written is something of a kind.
type written struct {
	write  func(t testing.TB, dir string)
	file   string // that is looked at; empty: the folder
	kind   string
	whole  []string // files that have a checksum
	others []string
}

// writers make some of each kind.
var writers = map[string]written{
	"split": {kind: Gallery, whole: []string{gallery.FeaturesFile, gallery.ImagesFile}, write: func(t testing.TB, dir string) {
		names := []byte("{\"row\":0,\"name\":\"a\"}\n{\"row\":1,\"name\":\"b\"}\n{\"row\":2,\"name\":\"c\"}\n")
		filetest.Write(t, filepath.Join(dir, gallery.ImagesFile), names)
		filetest.Write(t, filepath.Join(dir, gallery.FeaturesFile), summed(t, map[string]string{gallery.SumOf(gallery.ImagesFile): fmt.Sprintf("%08x", crcOf(names))}))
	}},
	"split of version 1": {kind: Gallery, others: []string{gallery.FeaturesFile, gallery.ImagesFile, gallery.TextsFile}, whole: []string{"gallery.image.inner.search", "gallery.text.inner.search"},
		write: func(t testing.TB, dir string) { copied(t, "../../gallery/testdata/v1/split", dir) }},
	"shards": {kind: Gallery, whole: []string{"texts-00000.safetensors", "texts-00000.jsonl", "texts-00001.safetensors", "texts-00001.jsonl", "gallery.text.inner.search", gallery.ManifestFile},
		write: func(t testing.TB, dir string) {
			copied(t, "../../gallery/testdata/v1/texts", dir)
			m, err := gallery.ReadManifest(dir)
			if err == nil {
				err = m.Write(dir)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	"index": {kind: Index, file: "x.search", whole: []string{"x.search"}, write: func(t testing.TB, dir string) {
		x := make([]float32, 300)
		for i := range x {
			x[i] = float32(i * i % 37)
		}
		pool := check.Get(search.Memory(x, 3))(t)
		e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
		defer e.Close()
		index, err := search.Build(t.Context(), e, pool, search.BuildOptions{Metric: search.L2})
		if err == nil {
			err = index.Save(filepath.Join(dir, "x.search"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}},
	"npz":         featureFile("all.npz", true),
	"packed npz":  featureFile("packed.npz", true),
	"npy":         featureFile("f4.npy", false),
	"pt":          featureFile("rows.pt", true),
	"parquet":     featureFile("float.parquet", false),
	"safetensors": featureFile("two.safetensors", false),
	"summed tensors": {kind: Features, file: "x.safetensors", whole: []string{"x.safetensors"}, write: func(t testing.TB, dir string) {
		filetest.Write(t, filepath.Join(dir, "x.safetensors"), summed(t, nil))
	}},
	"export": {kind: Export, whole: []string{"model.safetensors"}, others: []string{"config.json"}, write: func(t testing.TB, dir string) {
		filetest.Write(t, filepath.Join(dir, "model.safetensors"), summed(t, map[string]string{"format": "pt"}))
		filetest.Write(t, filepath.Join(dir, "config.json"), []byte(`{"a": 1}`))
	}},
	"cache": {kind: Cache, whole: []string{"shard-00.index", "ab/abcd.rgb", "neighbours-00.safetensors"}, others: []string{"features-00.npy"}, write: func(t testing.TB, dir string) {
		filetest.Write(t, filepath.Join(dir, "shard-00.index"), binary.LittleEndian.AppendUint32([]byte("any"), crcOf([]byte("any"))))
		pixels := []byte{1, 2, 3, 4, 5, 6}
		b := append([]byte("GEOAIMG2"), 2, 0, 0, 0, 1, 0, 0, 0)
		b = append(b, make([]byte, 16)...)
		b = binary.LittleEndian.AppendUint32(b, crcOf(pixels))
		b = binary.LittleEndian.AppendUint32(b, crcOf(b))
		filetest.Write(t, filepath.Join(dir, "ab/abcd.rgb"), append(b, pixels...))
		filetest.Write(t, filepath.Join(dir, "neighbours-00.safetensors"), summed(t, nil))
		npy := filetest.Read(t, "../../data/features/testdata/f4.npy")
		filetest.Write(t, filepath.Join(dir, "features-00.npy"), npy)
	}},
	"run of version 1": {kind: Run, others: []string{"config.toml", "environment.json", "metrics.jsonl", "checkpoints/latest", "expected.json"}, write: func(t testing.TB, dir string) {
		copied(t, "../../cmd/trainer/testdata/oldruns/quickstart-v0", dir)
	}},
	"ablation": {kind: Ablation, others: []string{"results.json", "table.csv", "a/seed-1/metrics.jsonl", "a/seed-1/ablation.json"}, write: func(t testing.TB, dir string) {
		filetest.Write(t, filepath.Join(dir, "results.json"), []byte("{}"))
		filetest.Write(t, filepath.Join(dir, "table.csv"), []byte("a,b\n"))
		filetest.Write(t, filepath.Join(dir, "a/seed-1/metrics.jsonl"), []byte("{\"step\": 1, \"loss\": 2}\n"))
		filetest.Write(t, filepath.Join(dir, "a/seed-1/ablation.json"), []byte("{}"))
	}},
}

// featureFile is a file of another package's tests.
func featureFile(name string, sum bool) (c written) {
	c.kind, c.file = Features, name
	if c.others = []string{name}; sum {
		c.whole, c.others = c.others, nil
	}
	c.write = func(t testing.TB, dir string) {
		b := filetest.Read(t, filepath.Join("../../data/features/testdata", name))
		filetest.Write(t, filepath.Join(dir, name), b)
	}
	return c
}

func copied(t testing.TB, from, to string) {
	t.Helper()
	check.OK(t, os.CopyFS(to, os.DirFS(from)))
}

// TestWhole: of every kind each file is listed, whole where it has a checksum.
func TestWhole(t *testing.T) {
	for name, c := range writers {
		dir := filepath.Join(t.TempDir(), "x")
		check.OK(t, os.Mkdir(dir, 0o777))
		c.write(t, dir)
		path := filepath.Join(dir, c.file)
		r, err := Path(t.Context(), path, true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := map[State][]string{}
		for _, f := range r.Files {
			got[f.State] = append(got[f.State], f.Name)
			if f.Bytes == 0 {
				t.Errorf("%s: %s has no bytes", name, f.Name)
			}
		}
		for state, want := range map[State][]string{Whole: c.whole, NoSum: c.others, Damaged: nil} {
			slices.Sort(got[state])
			if want = slices.Clone(want); !slices.Equal(got[state], slices.Sorted(slices.Values(want))) {
				t.Errorf("%s: %s: %q, want %q", name, state, got[state], want)
			}
		}
		if r.Kind != c.kind || r.Damaged != 0 || r.Err() != nil {
			t.Errorf("%s: %s, %d damaged: %v", name, r.Kind, r.Damaged, r.Err())
		}
		short, err := Path(t.Context(), path, false)
		if err != nil || len(short.Files) != len(r.Files) || slices.ContainsFunc(short.Files, func(f File) bool { return f.State != "" }) {
			t.Errorf("%s: what there is: %+v, %v", name, short, err)
		}
	}
}

// TestDamaged: a byte that changed in a file with a checksum is found, and the file named; one that was cut too.
func TestDamaged(t *testing.T) {
	for name, c := range writers {
		for _, file := range c.whole {
			for _, how := range []string{"first", "middle", "last", "cut", "longer"} {
				dir := filepath.Join(t.TempDir(), "x")
				check.OK(t, os.Mkdir(dir, 0o777))
				c.write(t, dir)
				b := filetest.Read(t, filepath.Join(dir, file))
				middle := len(b) / 3
				archive := strings.HasSuffix(file, ".npz") || strings.HasSuffix(file, ".pt")
				if archive {
					middle = inMember(t, b)
				}
				if archive && (how == "first" || how == "last" || how == "longer") {
					continue // bytes that no reader of an archive looks at
				}
				switch how {
				case "first":
					b[0] ^= 1
				case "middle":
					b[middle] ^= 1
				case "last":
					b[len(b)-1] ^= 16
				case "cut":
					b = b[:len(b)-1]
				case "longer":
					b = append(b, 0)
				}
				filetest.Write(t, filepath.Join(dir, file), b)
				r, err := Path(t.Context(), filepath.Join(dir, c.file), true)
				if err != nil {
					t.Errorf("%s: %s, %s: %v", name, file, how, err)
					continue
				}
				if r.Damaged == 0 || !strings.Contains(fmt.Sprint(r.Err()), file+": ") {
					t.Errorf("%s: %s, %s: %d damaged: %v", name, file, how, r.Damaged, r.Err())
				}
			}
		}
	}
}

// inMember returns the place of a byte of what an archive holds.
func inMember(t testing.TB, b []byte) int {
	t.Helper()
	z := check.Get(zip.NewReader(bytes.NewReader(b), int64(len(b))))(t)
	m := z.File[len(z.File)/2]
	at := check.Get(m.DataOffset())(t)
	return int(at) + int(m.CompressedSize64)/2
}

// TestForms: files without a checksum are read as far as they have a form.
func TestForms(t *testing.T) {
	for _, c := range []struct{ of, file, text, want string }{
		{"export", "config.json", "{", "it is not JSON"},
		{"ablation", "a/seed-1/metrics.jsonl", "x\n{}\n", "not a line of metrics"},
		{"run of version 1", "config.toml", "a = ", "toml"},
		{"run of version 1", "checkpoints/latest", "step-1", "is damaged"},
		{"npy", "f4.npy", "x", ""},
		{"split of version 1", gallery.ImagesFile, "{}\n{", "line 2"},
	} {
		dir := filepath.Join(t.TempDir(), "x")
		check.OK(t, os.Mkdir(dir, 0o777))
		writers[c.of].write(t, dir)
		filetest.Write(t, filepath.Join(dir, c.file), []byte(c.text))
		r, err := Path(t.Context(), filepath.Join(dir, writers[c.of].file), true)
		if err != nil || r.Damaged == 0 || !strings.Contains(fmt.Sprint(r.Err()), c.want) {
			t.Errorf("%s: %v, %v, want %q", c.file, r.Err(), err, c.want)
		}
	}
}

// TestGone: a gallery whose index.json or features are gone is damaged.
func TestGone(t *testing.T) {
	for of, file := range map[string]string{"shards": gallery.ManifestFile, "shards ": "texts-00001.safetensors", "split": gallery.ImagesFile} {
		dir := filepath.Join(t.TempDir(), "x")
		check.OK(t, os.Mkdir(dir, 0o777))
		writers[strings.TrimSpace(of)].write(t, dir)
		check.OK(t, os.Remove(filepath.Join(dir, file)))
		r, err := Path(t.Context(), dir, true)
		if err != nil || r.Kind != Gallery || r.Damaged == 0 || !strings.Contains(r.Err().Error(), file) {
			t.Errorf("%s: %+v, %v", file, r, err)
		}
	}
}

// TestNoKind: what is of no kind gets the list of kinds, and a look that is no longer wanted ends.
func TestNoKind(t *testing.T) {
	dir := t.TempDir()
	check.Fails(Path(t.Context(), dir, true))(t, "a gallery (embed)", "an index (.search) or a file of features")
	if _, err := Path(t.Context(), filepath.Join(dir, "none"), true); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	writers["split"].write(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Path(ctx, dir, true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
