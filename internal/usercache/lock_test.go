package usercache

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestLock: what several add to a file at the same time is all there, and nothing waits for ever.
func TestLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "folder", "things.json")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			defer Lock(file)()
			got := map[string]int{}
			_ = Read(file, &got)
			time.Sleep(time.Millisecond)
			got[fmt.Sprint(i)] = i
			if err := Write(file, got); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got := map[string]int{}
	if err := Read(file, &got); err != nil || len(got) != 8 {
		t.Errorf("%d entries of 8: %v (%v)", len(got), got, err)
	}
	Lock("")()
	held := Lock(file)
	begin := time.Now()
	Lock(file)()
	if d := time.Since(begin); d > 10*lockWait {
		t.Errorf("a lock that is not released holds for %v", d)
	}
	held()
	begin = time.Now()
	if Lock(file)(); time.Since(begin) > lockWait/2 {
		t.Error("a lock that was released holds")
	}
}
