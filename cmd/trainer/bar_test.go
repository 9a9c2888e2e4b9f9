package main

import "testing"

func TestFit(t *testing.T) {
	fields := []string{"ETA 3s", "loss 1", "lr 2"}
	for room, want := range map[int]string{0: "ETA 3s loss 1 lr 2", 18: "ETA 3s loss 1 lr 2", 17: "ETA 3s loss 1", 6: "ETA 3s", 5: ""} {
		if got := fit(fields, room); got != want {
			t.Errorf("%d columns: got %q, want %q", room, got, want)
		}
	}
}
