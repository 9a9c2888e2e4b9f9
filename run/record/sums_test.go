package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/train/runlog"
)

// TestSums: any damage to data.sums is found.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	want := map[string]splitSums{
		"train": {List: identity.Sum{1}, Samples: []identity.Sample{{Name: 1, Rest: 2}, {Name: 3, Rest: 4}}, Files: []fileSum{{5, 6, 7}, {8, -1, 0}}},
		"val":   {List: identity.Sum{2}, Samples: []identity.Sample{}, Files: []fileSum{}},
	}
	check.OK(t, writeSums(dir, want))
	if got := readSums(dir); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	text := check.Get(os.ReadFile(filepath.Join(dir, runlog.SumsFile)))(t)
	for i := range text {
		bad := bytes.Clone(text)
		bad[i] ^= 4
		if _, err := parseSums(bad); err == nil {
			t.Errorf("byte %d is damaged", i)
		}
		if _, err := parseSums(text[:i]); err == nil {
			t.Errorf("cut at %d", i)
		}
	}
}

// FuzzSums: whatever data.sums holds, it is read or refused, in memory of its own size.
func FuzzSums(f *testing.F) {
	f.Add([]byte(sumsMagic + "\x01\x00\x00\x00\x05train"))
	f.Fuzz(func(t *testing.T, text []byte) {
		text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
		all, err := parseSums(text)
		size := 0
		for _, s := range all {
			size += 16*len(s.Samples) + 24*len(s.Files)
		}
		if err == nil && size > len(text) {
			t.Errorf("%d bytes of %d", size, len(text))
		}
	})
}

// TestFeatureFolders: a folder of features is all of its files.
func TestFeatureFolders(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		check.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.pt", i)), []byte{byte(i)}, 0o666))
	}
	e := data.Entries{Len: 1, At: func(int) data.Entry { return data.Entry{Name: "row 0 with 0"} }}
	var cfg config.Config
	cfg.Data.Root = dir
	s, err := OpenSplit(t.Context(), cfg, "train", e, []source.Input{{Key: "data.pairs.image", Path: dir, Folder: true, Content: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.findFiles(t.Context()); err != nil || len(s.Files) != 3 || len(s.Early) != 3 || s.Record.Files[1].Path != "1.pt" {
		t.Errorf("%v, %+v, %+v (%v)", s.Files, s.Early, s.Record.Files, err)
	}
}
