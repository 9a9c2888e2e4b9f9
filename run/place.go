package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Ways to begin a run, for Options.Resume. Anything else is the path of a checkpoint.
const (
	Auto  = "auto"  // go on with the newest checkpoint of the run folder, if it has one
	Never = "never" // start anew, in another folder where there is a run already
)

// runFolder returns the run folder that a configuration names.
func runFolder(cfg config.Config) string {
	if cfg.Run.Out != "" {
		return cfg.Run.Out
	}
	return filepath.Join("runs", cfg.Run.Name)
}

// isFolder reports whether path is a folder.
func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// place decides on the run folder and the checkpoint to go on from.
func place(cfg *config.Config, resume string, say func(format string, args ...any)) (dir string,
	from *checkpoint.Checkpoint, err error) {
	dir = runFolder(*cfg)
	wrong := ""
	switch st, err := os.Stat(dir); {
	case err == nil && !st.IsDir():
		wrong = "is a file"
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		wrong = err.Error()
	}
	if wrong != "" {
		return "", nil, config.Errors{{Path: "run.out", Value: dir, Msg: wrong,
			Hint: "choose another folder with --out"}}
	}
	switch resume {
	case "", Auto:
		from, err = checkpoint.Load(dir)
		if errors.Is(err, checkpoint.ErrNone) {
			from, err = nil, nil
		}
		if err != nil {
			err = fmt.Errorf("%w\n(start anew with --resume never)", err)
		}
	case Never:
		base := dir
		for n := 2; folder.HasRun(dir); n++ { // an earlier run is never overwritten
			dir = fmt.Sprintf("%s-%d", base, n)
		}
		if dir != base {
			say("%s holds an earlier run: this one goes to %s", base, dir)
		}
	default:
		if from, err = checkpoint.Load(resume); err != nil {
			return "", nil, fmt.Errorf("--resume %s: %w", resume, err)
		}
		if folder.HasRun(dir) && !within(dir, from.Path) {
			from.Close()
			return "", nil, console.Argument("%s holds another run than %s: choose another folder with --out", dir,
				from.Path)
		}
	}
	if err != nil {
		return "", nil, err
	}
	if from != nil && from.Notice != "" {
		say("%s", from.Notice)
	}
	cfg.Run.Out = dir
	return dir, from, nil
}

// within reports whether path lies below dir, by whatever links to either.
func within(dir, path string) bool {
	a, err1 := resolved(dir)
	b, err2 := resolved(path)
	return err1 == nil && err2 == nil && strings.HasPrefix(b, a+string(filepath.Separator))
}

// resolved returns the absolute path of what is there, without links.
func resolved(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}
