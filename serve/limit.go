package serve

import (
	"context"
	"net"
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

// enter lets a request of an address in, or gives the status to refuse it with.
func (g *gate) enter(addr string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.all >= g.most:
		return http.StatusServiceUnavailable
	case g.of[addr] >= g.each:
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

// clientOf returns the address of a client without its port.
func clientOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
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

// boundedListener accepts a number of connections at once; others wait in the system's queue.
type boundedListener struct {
	net.Listener
	open  chan struct{}
	done  chan struct{}
	close sync.Once
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, open: make(chan struct{}, most), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &boundedConn{Conn: c, free: sync.OnceFunc(func() { <-l.open })}, nil
}

// Close implements net.Listener.
func (l *boundedListener) Close() error {
	l.close.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
