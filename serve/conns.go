package serve

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// conns is a listener that bounds connections, all and those of each client. A new one that finds no room takes that of
// the connection that has been idle for longest: of the same client where he has too many, else of any. Where none is
// idle, one of a client with too many is refused with 429, and others wait in the system's queue.
type conns struct {
	net.Listener
	most, each int
	refused    func(reason string)

	mu   sync.Mutex
	free sync.Cond // a place, or the end
	open map[*conn]bool
	of   map[string]int
	over bool
}

func newConns(l net.Listener, most, each int, refused func(reason string)) *conns {
	c := &conns{Listener: l, most: most, each: each, refused: refused, open: map[*conn]bool{}, of: map[string]int{}}
	c.free.L = &c.mu
	return c
}

// conn is a connection that was accepted.
type conn struct {
	net.Conn
	all    *conns
	client string // empty: of a socket of this machine, whose clients are not told apart
	once   sync.Once

	// Of all.mu.
	idle  bool // no request is in progress
	since time.Time
}

// graceOfNew is how long a connection that has not sent a request is spared.
const graceOfNew = time.Second

// Accept implements net.Listener.
func (c *conns) Accept() (net.Conn, error) {
	for {
		if err := c.room(); err != nil {
			return nil, err
		}
		raw, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if x := c.admit(raw); x != nil {
			return x, nil
		}
	}
}

// room waits until there is a place for a connection.
func (c *conns) room() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over && len(c.open) >= c.most {
		if x := c.idlest(""); x != nil {
			c.drop(x)
			continue
		}
		wake := time.AfterFunc(graceOfNew, c.free.Broadcast) // what is new now may be idle then
		c.free.Wait()
		wake.Stop()
	}
	if c.over {
		return net.ErrClosed
	}
	return nil
}

// admit counts a connection, or refuses it with nil.
func (c *conns) admit(raw net.Conn) net.Conn {
	x := &conn{Conn: raw, all: c, client: addressOf(raw.RemoteAddr().String()), idle: true, since: time.Now()}
	c.mu.Lock()
	if x.client != "" && c.of[x.client] >= c.each {
		if old := c.idlest(x.client); old != nil {
			c.drop(old)
		}
	}
	full := x.client != "" && c.of[x.client] >= c.each
	if !full {
		c.open[x] = true
		c.of[x.client]++
	}
	c.mu.Unlock()
	if !full {
		return x
	}
	c.refused("connections")
	_ = raw.SetDeadline(time.Now().Add(100 * time.Millisecond)) // its buffer is empty, so that nobody waits
	_, _ = raw.Write([]byte("HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n{\"error\":\"this client has too many connections open\"}\n"))
	_ = raw.Close()
	return nil
}

// idlest returns the connection that has been idle for longest, of a client or of any; nil: none is.
func (c *conns) idlest(client string) (found *conn) {
	for x := range c.open {
		if (client == "" || x.client == client) && x.idle && time.Since(x.since) >= graceOfNew &&
			(found == nil || x.since.Before(found.since)) {
			found = x
		}
	}
	return found
}

// drop closes a connection that has no request in progress.
func (c *conns) drop(x *conn) {
	c.remove(x)
	c.refused("idle")
	go x.Close() // which takes the lock
}

// remove takes a connection out of the count.
func (c *conns) remove(x *conn) {
	if !c.open[x] {
		return
	}
	delete(c.open, x)
	if c.of[x.client]--; c.of[x.client] == 0 {
		delete(c.of, x.client)
	}
	c.free.Broadcast()
}

// state notes what http.Server says of a connection.
func (c *conns) state(n net.Conn, s http.ConnState) {
	if t, ok := n.(*tls.Conn); ok {
		n = t.NetConn()
	}
	x, ok := n.(*conn)
	if !ok || s == http.StateClosed || s == http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.idle = s == http.StateIdle || s == http.StateNew; x.idle {
		x.since = time.Now()
	}
}

// Close implements net.Listener.
func (c *conns) Close() error {
	c.mu.Lock()
	c.over = true
	c.free.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

// Close implements net.Conn.
func (x *conn) Close() (err error) {
	x.once.Do(func() {
		x.all.mu.Lock()
		x.all.remove(x)
		x.all.mu.Unlock()
		err = x.Conn.Close()
	})
	return err
}

// addressOf returns the address of a client without its port, empty for a socket of this machine. IPv6 addresses count
// by their /64, which is what one client has.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil && !ip.IsLoopback() {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}
