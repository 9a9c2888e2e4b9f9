package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/configs"
	"github.com/geoalign/geoalign/internal/files"
)

// shipped is the folder that the configurations of the program seem to lie in, in messages and for their bases.
const shipped = "built-in:"

// readText returns the text of a configuration and the name that messages and bases have of it. A path that no file has
// may be the name of a shipped configuration.
func readText(path string) (name string, text []byte, err error) {
	if strings.HasPrefix(filepath.ToSlash(path), shipped+"/") {
		return readShipped(path)
	}
	text, err = files.Read(path, files.MaxConfig)
	if noFile(path) && !filepath.IsAbs(path) {
		if name, text, missing := readShipped(path); missing == nil {
			return name, text, nil
		}
	}
	return path, text, err
}

// noFile says that nothing or a folder is called so: beside a folder photos, base = "photos" is the shipped one.
func noFile(path string) bool {
	st, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && st.IsDir()
}

// readShipped is readText of a shipped configuration.
func readShipped(path string) (name string, text []byte, err error) {
	file, text, err := configs.Read(strings.TrimPrefix(filepath.ToSlash(path), shipped+"/"))
	return shipped + "/" + file, text, err
}
