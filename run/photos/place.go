package photos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/geoalign/geoalign/internal/identity"
)

// Place returns where the gallery of a folder of pictures lies in the user's data folder, and makes nothing there. The
// folder itself stays as it is.
func Place(folder string) (string, error) {
	real, err := realPath(folder)
	if err != nil {
		return "", err
	}
	data, err := dataFolder()
	if err != nil {
		return "", err
	}
	name := strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`<>:"/\|?*`, r) {
			return '_'
		}
		return r
	}, filepath.Base(real))
	return filepath.Join(data, "geoalign", "photos", name+"-"+identity.OfBytes([]byte(real)).String()[:8]), nil
}

// realPath is the path of a folder without links.
func realPath(folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("the folder of pictures: %w", err)
	}
	st, err := os.Stat(abs)
	switch {
	case err != nil:
		return "", fmt.Errorf("the folder of pictures: %w", err)
	case !st.IsDir():
		return "", fmt.Errorf("%s is not a folder: name the folder of the pictures", folder)
	}
	return abs, nil
}

// dataFolder is where programs keep what a user has.
func dataFolder() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return dir, nil
		}
	}
	home, err := os.UserHomeDir()
	switch {
	case err != nil:
		return "", errors.New("there is no data folder for this user: set HOME or XDG_DATA_HOME, or name a place with --gallery")
	case runtime.GOOS == "darwin" || runtime.GOOS == "ios":
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "share"), nil
}
