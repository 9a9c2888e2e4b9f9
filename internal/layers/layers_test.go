package layers

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/geoalign/geoalign/"

// order is the layers from the top: a package imports packages of its own line and of lines
// below it. A folder stands for all below it that have no line of their own.
var order = [][]string{
	{"cmd", "tools", "interop", "experiments", "examples"},
	{"."},
	{"bench", "serve"},
	{"run"},
	{"eval/ablation", "export"},
	{"export/onnx"},
	{"train"},
	{"model", "config/gen"},
	{"config"},
	{"align"},
	{"tasks/all"},
	{"tasks"},
	{"report", "eval", "train/checkpoint"},
	{"objectives"},
	{"objectives/scoring", "objectives/geodesic"},
	{"weights", "interact"},
	{"encoders"},
	{"gallery"},
	{"data/source", "train/optim", "train/schedule"},
	{"data/features", "data/regions", "data/neighbours", "data/descriptor", "data/utterances"},
	{"data"},
	{"compute/feed"},
	{"ops"},
	{"search"},
	{"compute"},
	{"internal/cuda"},
	{"internal/exec", "internal/mpi"},
	{"internal/kernel"},
	{"explain"},
	{"batch", "configs", "state", "space", "config/section", "compute/parallel", "internal", "internal/kernel/cpu"},
}

// layer is the line of a package.
func layer(t *testing.T, pkg string) int {
	best, at := -1, -1
	for i, line := range order {
		for _, p := range line {
			if (pkg == p || strings.HasPrefix(pkg, p+"/")) && len(p) > best {
				best, at = len(p), i
			}
		}
	}
	if at < 0 {
		t.Fatalf("package %s has no layer: give it a line in order and a place in docs/architecture.md", pkg)
	}
	return at
}

// TestImportsPointDownwards reads the imports of every file that is not a test.
func TestImportsPointDownwards(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		own := filepath.ToSlash(dir)
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			other, ok := strings.CutPrefix(name, module)
			switch {
			case !ok:
			case layer(t, other) < layer(t, own):
				t.Errorf("%s imports %s, which lies above %s", path, other, own)
			case other == "internal/cuda" && strings.HasPrefix(own, "ops/") && !strings.Contains(own, "/internal/"):
				t.Errorf("%s imports %s: steps for the device lie in %s/internal/oncuda", path, other, own)
			}
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Fatalf("%d files read: %v", files, err)
	}
}
