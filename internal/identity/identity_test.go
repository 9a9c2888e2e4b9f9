package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// aged writes a file that last changed long enough ago for its stamp to prove what it holds.
func aged(t *testing.T, path, text string) {
	t.Helper()
	check.OK(t, os.WriteFile(path, []byte(text), 0o666))
	old := time.Now().Add(-time.Hour)
	check.OK(t, os.Chtimes(path, old, old))
}

func sumOf(t *testing.T, b *Book, path string) Sum {
	t.Helper()
	return check.Get(b.Sum(context.Background(), path))(t)
}

// A sum is that of all bytes, whatever their number.
func TestSum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, n := range []int{0, 1, sumBytes - 1, sumBytes, sumBytes + 1, 3 * sumBytes} {
		text := bytes.Repeat([]byte("x"), n)
		aged(t, path, string(text))
		want := sha256.Sum256(text)
		got, err := Of(t.Context(), path)
		if err != nil || got.String() != fmt.Sprintf("%x", want[:16]) || OfBytes(text) != got {
			t.Errorf("%d bytes: %v, %v", n, got, err)
		}
		var back Sum
		if err := back.UnmarshalText([]byte(got.String())); err != nil || back != got {
			t.Errorf("read back: %v, %v", back, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Of(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	for _, bad := range []string{"00", "zz", fmt.Sprintf("%034d", 0), "g0000000000000000000000000000000"} {
		if err := new(Sum).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// Lists differ by their entries, by the order of these and by where a field ends.
func TestList(t *testing.T) {
	seen := map[Sum][][]string{}
	for _, entries := range [][][]string{{}, {{}}, {{""}}, {{"a"}}, {{"a", "b"}}, {{"ab"}}, {{"a"}, {"b"}},
		{{"b"}, {"a"}}, {{"a", ""}}, {{"", "a"}}, {{"a"}, {}}} {
		l := NewList()
		for _, e := range entries {
			l.Add(e...)
		}
		if other, ok := seen[l.Sum()]; ok {
			t.Errorf("%q and %q have one sum", entries, other)
		}
		seen[l.Sum()] = entries
	}
}

// A file that stays is read once; one that changes, with its size and time as they were, is read again.
func TestBook(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has no time that a program cannot set")
	}
	dir := t.TempDir()
	path, store := filepath.Join(dir, "a"), filepath.Join(dir, "below", "sums")
	aged(t, path, "one")
	s := check.Get(StampOf(path))(t)
	b := OpenBook(store)
	// The time of the change of state is now: nothing is proven yet.
	if sumOf(t, b, path) != OfBytes([]byte("one")) || len(b.known) != 0 {
		t.Fatalf("noted at once: %v", b.known)
	}
	s.Changed -= int64(time.Hour)
	b.Note(path, s, OfBytes([]byte("one")))
	check.OK(t, b.Save())
	again := OpenBook(store)
	if sum, ok := again.Known(path, s); !ok || sum != OfBytes([]byte("one")) {
		t.Errorf("%v, %v is known", sum, ok)
	}
	aged(t, path, "two") // the same size, and the time set back
	if sumOf(t, again, path) != OfBytes([]byte("two")) {
		t.Error("a file that changed has its old sum")
	}
	if _, err := again.Sum(t.Context(), filepath.Join(dir, "none")); err == nil {
		t.Error("no file has a sum")
	}
}

// A known stamp is believed: the file is not read.
func TestKnownIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	aged(t, path, "one")
	s := check.Get(StampOf(path))(t)
	b := OpenBook("")
	b.known[key(path)] = entry{s, OfBytes([]byte("noted"))}
	if sumOf(t, b, path) != OfBytes([]byte("noted")) {
		t.Error("it was read")
	}
	if err := b.Save(); err != nil {
		t.Error(err)
	}
}

// Any damage to a book makes it an empty one.
func TestDamagedBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sums")
	b := OpenBook(path)
	b.Note("x", Stamp{Size: 1, Modified: 1}, Sum{1})
	b.Note("y", Stamp{Size: 2, Modified: 1}, Sum{2})
	check.OK(t, b.Save())
	text := check.Get(os.ReadFile(path))(t)
	if n := len(OpenBook(path).known); n != 2 {
		t.Fatalf("%d entries", n)
	}
	for i := range text {
		bad := bytes.Clone(text)
		bad[i] ^= 4
		if _, ok := parseBook(bad); ok {
			t.Errorf("byte %d is damaged", i)
		}
		if _, ok := parseBook(text[:i]); ok {
			t.Errorf("cut at %d", i)
		}
	}
}

// What several books of one file learn is all kept, up to the newest so many.
func TestBooksOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sums")
	var books []*Book
	for i := range 4 {
		b := OpenBook(path)
		b.most = 3
		b.Note(fmt.Sprint(i), Stamp{Size: int64(i), Modified: 1}, Sum{byte(i + 1)})
		books = append(books, b)
	}
	for _, b := range books {
		check.OK(t, b.Save())
	}
	all := OpenBook(path)
	for i := range 4 {
		if sum, ok := all.Known(fmt.Sprint(i), Stamp{Size: int64(i), Modified: 1}); ok != (i > 0) || ok &&
			sum != (Sum{byte(i + 1)}) {
			t.Errorf("entry %d: %v %v", i, sum, ok)
		}
	}
}

// A check is made once for one stamp, and again after an error or another stamp, in this book or the next.
func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sums")
	b := OpenBook(path)
	now, bad, made := Stamp{Size: 1, Modified: 1, File: 1}, errors.New("bad"), 0
	check := func(name string, result error) error {
		return b.Check(name, func() (Stamp, error) { return now, nil }, func() error { made++; return result })
	}
	for i, step := range []struct {
		name string
		file uint64 // number of the file, so another stamp
		bad  error
		made bool
	}{{"x", 1, bad, true}, {"x", 1, nil, true}, {"x", 1, bad, false}, {"y", 1, nil, true}, {"x", 2, bad, true},
		{"x", 1, nil, false}} {
		now.File = step.file
		before := made
		err := check(step.name, step.bad)
		if want := step.bad; (made > before) != step.made || step.made && err != want || !step.made && err != nil {
			t.Errorf("step %d: %d checks, %v", i, made-before, err)
		}
		if err := b.Save(); err != nil {
			t.Fatal(err)
		}
		b = OpenBook(path)
	}
	moving := uint64(0)
	err := b.Check("z", func() (Stamp, error) { moving++; return Stamp{Size: 1, Modified: 1, File: moving}, nil },
		func() error { return nil })
	if _, ok := b.Known("z", Stamp{Size: 1, Modified: 1, File: 1}); ok || err != nil {
		t.Errorf("contents that changed during the check are noted: %v", err)
	}
	if err := b.Check("z", func() (Stamp, error) { return Stamp{}, bad }, nil); err != bad {
		t.Error(err)
	}
}

// Stamps together are another one wherever one of them is, or their order, and prove no more than the newest.
func TestTogether(t *testing.T) {
	now := time.Now()
	old := Stamp{Size: 1, Modified: now.Add(-time.Hour).UnixNano(), File: 1}
	young := Stamp{Size: 2, Modified: now.UnixNano(), File: 2}
	if Together(old) != old || Together(old, young) == Together(young, old) || Together(old, old) == Together(old) {
		t.Error("stamps are mixed up")
	}
	if !Together(old, old).Proves(now) || Together(old, young).Proves(now) {
		t.Error("the newest does not decide what is proven")
	}
}

// FuzzBook: whatever a book holds, it is read or refused.
func FuzzBook(f *testing.F) {
	f.Add([]byte(bookMagic))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer budgettest.Within(t, len(text))()
		parseBook(text)
	})
}
