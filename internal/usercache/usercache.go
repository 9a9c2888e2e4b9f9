// Package usercache keeps what this program found out about a machine, in JSON files of the
// folder geoalign in the user's cache folder. Nothing needs such a file: what it holds can be
// found out again.
package usercache

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// Most is the number of bytes above which a file counts as damaged.
const Most = 16 << 20

// File returns the path of the file of a name, empty where there is no place for one.
func File(name string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "geoalign", name)
}

// Read sets v to what a file holds. A file that is absent is an fs.ErrNotExist, any other error
// says that it is damaged or cannot be read.
func Read(file string, v any) error {
	text, err := files.Read(file, Most)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	return err
}

// Write replaces a file in one step, so that a program that reads it at the same time finds the
// old or the new one, and of two that write at the same time one wins: see Lock.
func Write(file string, v any) error {
	if file == "" {
		return errors.New("there is no cache folder for this user: set HOME or XDG_CACHE_HOME")
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return files.Replace(file, text)
}

// Program tells builds of this program apart as far as it knows itself.
func Program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	id := info.GoVersion + " " + info.Main.Version
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs.") {
			id += " " + s.Value
		}
	}
	return id
}

// Stamp describes a file or folder: it changes with the contents.
func Stamp(path string) string {
	i, err := os.Stat(path)
	if err != nil {
		return "absent"
	}
	return fmt.Sprint(i.Size(), " ", i.ModTime().UnixNano())
}
