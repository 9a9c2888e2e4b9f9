package dynlib

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/usercache"
)

// Verdicts are kept in the file libraries.json of the folder geoalign in the
// user's cache folder. They hold for the files as they were (path, size, time of
// change), for the places that the loader looks in, for the instruction set in use
// and for this version of the program. A cache that cannot be read or written is
// no error: libraries are then tried at each start.

// probeFormat changes when the trial or the file does.
const probeFormat = 1

// passingTime is how long a verdict holds that may be another one the next time,
// such as that of a library that took too long on a busy machine.
const passingTime = time.Hour

// cacheLimit is the number of entries beyond which the file starts anew.
const cacheLimit = 64

// cachedVerdicts is an entry of the file.
type cachedVerdicts struct {
	Verdicts []verdict `json:"verdicts"`
	// Files are those that the verdicts stand on, as usercache.Stamp describes them.
	Files map[string]string `json:"files"`
	Until *time.Time        `json:"until,omitempty"` // always, if nil
}

// tried returns the verdicts on files, from the cache or from child processes. An
// error means that no child could be run.
func (t Trial) tried(files []string) ([]verdict, error) {
	cache := cacheFile()
	key := t.cacheKey(files)
	if c, ok := readVerdicts(cache)[key]; ok && c.holds() {
		return c.Verdicts, nil
	}
	verdicts, err := t.probe(files)
	if err != nil {
		return nil, err
	}
	c := cachedVerdicts{Verdicts: verdicts, Files: map[string]string{}}
	for _, v := range verdicts {
		for _, f := range []string{locate(v.File), v.Path} {
			if f != "" {
				c.Files[f] = usercache.Stamp(f)
			}
		}
		if v.passing {
			until := time.Now().Add(passingTime)
			c.Until = &until
		}
	}
	defer usercache.Lock(cache)()
	all := readVerdicts(cache) // others may have added to it
	if all == nil || len(all) >= cacheLimit {
		all = map[string]cachedVerdicts{}
	}
	all[key] = c
	writeVerdicts(cache, all)
	return verdicts, nil
}

// holds reports whether the files are as they were.
func (c cachedVerdicts) holds() bool {
	if c.Until != nil && time.Now().After(*c.Until) {
		return false
	}
	for f, s := range c.Files {
		if usercache.Stamp(f) != s {
			return false
		}
	}
	return len(c.Verdicts) > 0
}

// cacheFile returns the path of the cache, empty where there is no place for one.
func cacheFile() string { return usercache.File("libraries.json") }

// readVerdicts returns nil for a file that is absent or damaged.
func readVerdicts(file string) (all map[string]cachedVerdicts) {
	if usercache.Read(file, &all) != nil {
		return nil
	}
	return all
}

// writeVerdicts replaces the file where that can be done.
func writeVerdicts(file string, all map[string]cachedVerdicts) { _ = usercache.Write(file, all) }

// cacheKey depends on everything but the libraries themselves.
func (t Trial) cacheKey(files []string) string {
	h := sha256.New()
	fmt.Fprintln(h, probeFormat, usercache.Program(), runtime.GOARCH, cpu.Level(), cpu.HasBF16, t.Name, files)
	for _, place := range append(searchPath(), "/etc/ld.so.cache") {
		fmt.Fprintln(h, place, usercache.Stamp(place))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// searchPath returns the folders that the system's loader looks in, the likely
// ones: ld.so.cache stands for the others.
func searchPath() []string {
	var out []string
	for _, v := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"} {
		out = append(out, filepath.SplitList(os.Getenv(v))...)
	}
	triple := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu"
	return append(out, "/lib/"+triple, "/usr/lib/"+triple, "/usr/local/lib", "/lib64", "/usr/lib64", "/lib",
		"/usr/lib", "/opt/homebrew/lib")
}

// locate returns where the loader probably finds a file, or an empty string.
func locate(file string) string {
	if strings.Contains(file, "/") {
		return file
	}
	for _, place := range searchPath() {
		if path := filepath.Join(place, file); place != "" && usercache.Stamp(path) != "absent" {
			return path
		}
	}
	return ""
}
