package budget

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

func TestCheck(t *testing.T) {
	if err := Check("a picture", 100, 100, "shrink it"); err != nil {
		t.Error(err)
	}
	err := Check("a picture", 704_000_000, 465_000_000, "shrink it")
	if e := new(Error); !errors.As(err, &e) || err.Error() != "a picture takes 704 MB, more than the 465 MB that it may: shrink it" {
		t.Error(err)
	}
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1234: "1.23 kB", 512 << 20: "537 MB", 3 << 40: "3.3 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestReader(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 5000} {
		for _, one := range []bool{false, true} {
			var r io.Reader = strings.NewReader(strings.Repeat("x", n))
			if one {
				r = iotest.OneByteReader(r)
			}
			b, err := io.ReadAll(Reader(r, "a page", 10, "write it anew"))
			if len(b) != min(n, 10) || (err != nil) != (n > 10) {
				t.Errorf("of %d: %d bytes, %v", n, len(b), err)
			}
			if err != nil && err.Error() != "a page takes more than the 10 bytes that it may: write it anew" {
				t.Error(err)
			}
		}
	}
	if b, err := io.ReadAll(Reader(bytes.NewReader(nil), "", 0, "")); err != nil || len(b) > 0 {
		t.Error(b, err)
	}
}

// TestShared: no more than the size is taken at a time, a piece larger than all takes all, and none waits for ever.
func TestShared(t *testing.T) {
	s := NewShared(100, 100)
	var mu sync.Mutex
	var now, most int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 20 {
				n := int64(1 + (i*7+j*13)%60)
				if j%10 == 9 {
					n = 1000
				}
				s.Take(n)
				mu.Lock()
				now += min(n, 100)
				most = max(most, now)
				mu.Unlock()
				mu.Lock()
				now -= min(n, 100)
				mu.Unlock()
				s.Give(n)
			}
		})
	}
	done := make(chan bool)
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("some wait for ever")
	}
	if most > 100 || s.used != 0 {
		t.Errorf("%d of 100 were taken at a time, %d are at the end", most, s.used)
	}
}

// TestSharedOrder: a large piece that came first begins before small ones that came later.
func TestSharedOrder(t *testing.T) {
	s := NewShared(100, 100)
	s.Take(50)
	began := make(chan int64, 2)
	wait := func(n uint64) {
		for {
			s.mu.Lock()
			next := s.next
			s.mu.Unlock()
			if next == n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	go func() { s.Take(100); began <- 100; s.Give(100) }()
	wait(2)
	go func() { s.Take(10); began <- 10; s.Give(10) }()
	wait(3)
	select {
	case n := <-began:
		t.Fatalf("%d began while 50 were taken and a piece of 100 waited", n)
	case <-time.After(20 * time.Millisecond):
	}
	s.Give(50)
	if a, b := <-began, <-began; a != 100 || b != 10 {
		t.Errorf("%d before %d", a, b)
	}
}
