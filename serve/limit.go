package serve

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// gate counts requests in progress, all and of each address.
type gate struct {
	mu         sync.Mutex
	all        int
	of         map[string]int
	most, each int
}

// enter lets a request of an address in, or gives the status to refuse it with. Clients without one, of a socket of
// this machine, are not told apart.
func (g *gate) enter(addr string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.all >= g.most:
		return http.StatusServiceUnavailable
	case addr != "" && g.of[addr] >= g.each:
		return http.StatusTooManyRequests
	}
	g.all++
	g.of[addr]++
	return 0
}

func (g *gate) leave(addr string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if g.of[addr]--; g.of[addr] == 0 {
		delete(g.of, addr)
	}
}

// slots are places for work that takes much memory or time.
type slots chan struct{}

// take waits for a place, at most so long.
func (s slots) take(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case s <- struct{}{}:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

func (s slots) give() { <-s }

// slotWait is how long a request waits for a slot.
const slotWait = 3 * time.Second
