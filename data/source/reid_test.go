package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
)

// TestReID: made-up folders with the names and lists of the published collections. A row is the path, identity, camera
// and role (0: both, 1: query, 2: gallery) of an image.
func TestReID(t *testing.T) {
	for _, c := range []struct {
		layout      string
		files       map[string]string
		train, test []string
	}{
		{"market1501", map[string]string{
			"bounding_box_train/0002_c1s1_000451_03.jpg": "", "bounding_box_train/0007_c3s3_077419_03.jpg": "", "bounding_box_train/Thumbs.db": "",
			"query/0005_c2s1_000001_00.jpg": "", "bounding_box_test/0000_c1s1_000151_01.jpg": "", "bounding_box_test/-1_c1s1_000401_03.jpg": "",
			"bounding_box_test/0005_c6s1_000001_00.jpg": "",
		}, []string{"bounding_box_train/0002_c1s1_000451_03.jpg 2 1 0", "bounding_box_train/0007_c3s3_077419_03.jpg 7 3 0"},
			[]string{"query/0005_c2s1_000001_00.jpg 5 2 1", "bounding_box_test/0000_c1s1_000151_01.jpg 0 1 2", "bounding_box_test/0005_c6s1_000001_00.jpg 5 6 2"}},
		{"msmt17", map[string]string{
			"list_train.txt": "0000/0000_000_01_0303morning_0008_0.jpg 0\n", "list_val.txt": "0000/0000_001_14_0303noon_0008_1.jpg 0\n",
			"list_query.txt": "0003/0003_000_02_0303morning_0010_0.jpg 3\n", "list_gallery.txt": "0003/0003_001_05_0303morning_0010_1.jpg 3\n",
		}, []string{"train/0000/0000_000_01_0303morning_0008_0.jpg 0 1 0", "train/0000/0000_001_14_0303noon_0008_1.jpg 0 14 0"},
			[]string{"test/0003/0003_000_02_0303morning_0010_0.jpg 3 2 1", "test/0003/0003_001_05_0303morning_0010_1.jpg 3 5 2"}},
		{"sop", map[string]string{
			"Ebay_train.txt": "image_id class_id super_class_id path\n1 1 1 bicycle_final/111085122871_0.JPG\n",
			"Ebay_test.txt":  "image_id class_id super_class_id path\n59552 11319 1 bicycle_final/251952414262_2.JPG\n",
		}, []string{"bicycle_final/111085122871_0.JPG 1 -1 0"}, []string{"bicycle_final/251952414262_2.JPG 11319 -1 0"}},
		{"cub", map[string]string{
			"images.txt":             "1 001.Black_footed_Albatross/a.jpg\n2 100.Brown_Pelican/b.jpg\n3 101.White_Pelican/c.jpg\n",
			"image_class_labels.txt": "1 1\n2 100\n3 101\n",
		}, []string{"images/001.Black_footed_Albatross/a.jpg 1 -1 0", "images/100.Brown_Pelican/b.jpg 100 -1 0"}, []string{"images/101.White_Pelican/c.jpg 101 -1 0"}},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			path := filepath.Join(root, filepath.FromSlash(name))
			check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
			check.OK(t, os.WriteFile(path, []byte(text), 0o644))
		}
		cfg := configOf("reid", root)
		cfg.Data.ReID.Layout = c.layout
		for split, want := range map[string][]string{"train": c.train, "test": c.test} {
			ds := check.Get(source.Split(t.Context(), cfg.Source(), split, source.Options{}))(t)
			var got []string
			for i := range ds.Len() {
				seen := ds.(data.Seen)
				name := filepath.ToSlash(check.Get(filepath.Rel(root, ds.Name(i)))(t))
				got = append(got, fmt.Sprint(name, " ", ds.ImageID(i), seen.Camera(i), seen.Role(i)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %s: %q, want %q", c.layout, split, got, want)
			}
		}
		if _, err := source.Split(t.Context(), cfg.Source(), "val", source.Options{}); err == nil {
			t.Errorf("%s has a split val", c.layout)
		}
		for name, text := range c.files { // a list that is cut
			if path := filepath.Join(root, filepath.FromSlash(name)); text != "" {
				check.OK(t, os.WriteFile(path, []byte("1\n"), 0o644))
				_, err := source.Split(t.Context(), cfg.Source(), "train", source.Options{})
				if _, other := source.Split(t.Context(), cfg.Source(), "test", source.Options{}); err == nil {
					err = other
				}
				if err == nil || !strings.Contains(err.Error(), "line 1 has 1 fields") {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}
