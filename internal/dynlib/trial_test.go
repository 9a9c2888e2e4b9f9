//go:build !static

package dynlib

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/testlib"
)

func TestMain(m *testing.M) {
	if os.Getenv(probeVariable) != "" {
		ProbeInChild()
	}
	os.Exit(m.Run())
}

// answer is a library with a function answer, which returns 0.
var answer = Register(Trial{
	Name: "answer", Env: "GEOALIGN_ANSWER",
	Try: func(file string, begin func(step string)) (any, string) {
		lib, warning := Trial{Env: "GEOALIGN_ANSWER"}.Load(file, begin)
		if lib == nil {
			return nil, warning
		}
		f, err := lib.Func("answer")
		if err == nil {
			begin("its self-test")
			if got := Call(f); got != 0 {
				err = fmt.Errorf("the answer is %d", got)
			}
		}
		if err != nil {
			return nil, fmt.Sprintf("%s is not used: %v", file, err)
		}
		return file, ""
	},
	Path: func(use any) string { return use.(string) },
})

var sound = []testlib.Func{{Name: "answer", Code: testlib.ReturnsZero}}

// probeIn turns the trial in child processes on, with a cache of its own.
func probeIn(t *testing.T) (cache string) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the broken libraries are for Linux on amd64")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	SetProbing(true)
	t.Cleanup(func() { SetProbing(false) })
	return cacheFile()
}

// written writes a library that GEOALIGN_ANSWER names.
func written(t *testing.T, content []byte) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "libbroken.so")
	check.OK(t, os.WriteFile(file, content, 0o755))
	t.Setenv("GEOALIGN_ANSWER", file)
	return file
}

func TestSoundLibraryIsFound(t *testing.T) {
	probeIn(t)
	file := written(t, testlib.Build(sound, nil))
	for range 2 { // by trial and from the cache
		if use, warnings := answer.Find(); use != file || len(warnings) != 0 {
			t.Errorf("got %v with warnings %q, want %s", use, warnings, file)
		}
	}
}

// A library that never returns counts as broken, for an hour.
func TestLibraryThatLoops(t *testing.T) {
	cache := probeIn(t)
	defer func(d time.Duration) { probeTimeout = d }(probeTimeout)
	probeTimeout = 700 * time.Millisecond
	file := written(t, testlib.Build(sound, testlib.Loops))
	use, warnings := answer.Find()
	if use != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "gave no answer within 700ms") ||
		!strings.Contains(warnings[0], file) {
		t.Fatalf("got %v, %q", use, warnings)
	}
	for _, c := range readVerdicts(cache) {
		if c.Until == nil || time.Until(*c.Until) > passingTime {
			t.Errorf("the verdict holds until %v, want an hour", c.Until)
		}
	}
}

func TestVerdictsAreCached(t *testing.T) {
	cache := probeIn(t)
	file := written(t, testlib.Build(nil, testlib.Segfaults))
	_, first := answer.Find()
	all := readVerdicts(cache)
	if len(all) != 1 {
		t.Fatalf("%d entries in %s, want 1", len(all), cache)
	}
	// What the file says is believed while the library is as it was.
	for key, c := range all {
		c.Verdicts[0].Warning = "from the cache"
		all[key] = c
	}
	writeVerdicts(cache, all)
	if _, warnings := answer.Find(); len(warnings) != 1 || warnings[0] != "from the cache" {
		t.Errorf("the cache is not used: %q", warnings)
	}
	// Another library in its place is tried again.
	check.OK(t, os.WriteFile(file, testlib.Build(nil, testlib.ExitsZero), 0o755))
	old := time.Now().Add(-time.Hour)
	check.OK(t, os.Chtimes(file, old, old))
	if _, warnings := answer.Find(); len(warnings) != 1 || strings.Contains(warnings[0], "cache") || warnings[0] == first[0] {
		t.Errorf("the changed file is not tried: %q", warnings)
	}
	// And so is everything when the cache is damaged or cannot be written.
	check.OK(t, os.WriteFile(cache, []byte("{"), 0o644))
	if _, warnings := answer.Find(); len(warnings) != 1 {
		t.Errorf("with a damaged cache: %q", warnings)
	}
	if got := readVerdicts(cache); len(got) != 1 {
		t.Errorf("the damaged cache is not replaced: %v", got)
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(file, "not a folder"))
	if _, warnings := answer.Find(); len(warnings) != 1 {
		t.Errorf("without a cache: %q", warnings)
	}
}

// What several processes find out at the same time is all kept.
func TestVerdictsOfSeveral(t *testing.T) {
	cache := probeIn(t)
	var all sync.WaitGroup
	for i := range 4 {
		file := filepath.Join(t.TempDir(), fmt.Sprint("libsound", i, ".so"))
		check.OK(t, os.WriteFile(file, testlib.Build(sound, nil), 0o755))
		x := answer
		x.Files = []string{file}
		all.Go(func() {
			if use, warnings := x.Find(); use != file || len(warnings) != 0 {
				t.Errorf("got %v with warnings %q, want %s", use, warnings, file)
			}
		})
	}
	all.Wait()
	if got := readVerdicts(cache); len(got) != 4 {
		t.Errorf("%d entries, want 4", len(got))
	}
}

func TestCachedVerdictsExpire(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lib.so")
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	v := []verdict{{File: file}}
	rows := []struct {
		c    cachedVerdicts
		want bool
	}{
		{cachedVerdicts{Verdicts: v}, true},
		{cachedVerdicts{Verdicts: v, Until: &future}, true},
		{cachedVerdicts{Verdicts: v, Until: &past}, false},
		{cachedVerdicts{Verdicts: v, Files: map[string]string{file: "absent"}}, true},
		{cachedVerdicts{Verdicts: v, Files: map[string]string{file: "12 345"}}, false},
		{cachedVerdicts{}, false},
	}
	for i, r := range rows {
		if got := r.c.holds(); got != r.want {
			t.Errorf("row %d: got %v, want %v", i, got, r.want)
		}
	}
}

// The child tells each step, so that the parent knows where it died.
func TestServeProbe(t *testing.T) {
	t.Setenv("GEOALIGN_ANSWER", "libgeoalign-named.so")
	var b strings.Builder
	if code := answer.serve([]string{"libgeoalign-absent.so", "libgeoalign-named.so"}, &b); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var got []report
	for dec := json.NewDecoder(strings.NewReader(b.String())); dec.More(); {
		var r report
		check.OK(t, dec.Decode(&r))
		got = append(got, r)
	}
	if len(got) != 4 || got[0].Step != "loading it" || !got[1].Done || got[1].Warning != "" ||
		!got[3].Done || !strings.Contains(got[3].Warning, "libgeoalign-named.so") {
		t.Errorf("got %+v", got)
	}
}
