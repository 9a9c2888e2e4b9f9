//go:build !static

package library

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/testlib"
)

// Builds of OpenBLAS are found by the names of their functions, whatever the width of their sizes.
func TestNamesOfOpenBLAS(t *testing.T) {
	config := testlib.Func{Code: testlib.ReturnsText("OpenBLAS 0.3.99")}
	for _, r := range []struct {
		set, config, sgemm string
		wide               bool
		want               string // part of the warning
	}{
		{"openblas_set_num_threads", "openblas_get_config", "sgemm_", false, ""},
		{"openblas_set_num_threads", "openblas_get_config", "sgemm_", true, ""},
		{"openblas_set_num_threads64_", "openblas_get_config64_", "sgemm_64_", true, ""},
		{"scipy_openblas_set_num_threads", "scipy_openblas_get_config", "scipy_sgemm_", false, ""},
		{"scipy_openblas_set_num_threads64_", "scipy_openblas_get_config64_", "scipy_sgemm_64_", true, ""},
		{"scipy_openblas_set_num_threads64_", "scipy_openblas_get_config64_", "sgemm_", true, "has no function scipy_sgemm_64_"},
		{"other_openblas_set_num_threads", "openblas_get_config", "sgemm_", false, "nor one with the prefix scipy_ or the suffix 64_"},
	} {
		probeIn(t)
		config.Name = r.config
		file := filepath.Join(t.TempDir(), "libblas.so")
		text := testlib.Build([]testlib.Func{{Name: r.set, Code: testlib.ReturnsZero}, config, {Name: r.sgemm, Code: testlib.SGEMM(r.wide, -1, nil)}}, nil)
		if err := os.WriteFile(file, text, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GEOALIGN_OPENBLAS", file)
		spec := librarySpecs[1]
		spec.files = nil
		l := spec.search()
		if r.want != "" {
			if l.Backend != nil || !strings.Contains(l.Info.Reason, r.want) {
				t.Errorf("%s: %+v", r.set, l.Info)
			}
			continue
		}
		if l.Backend == nil || l.Info.File != file || l.Info.Version != "OpenBLAS 0.3.99" {
			t.Errorf("%s with %s: %+v", r.set, r.sgemm, l.Info)
		}
	}
}
