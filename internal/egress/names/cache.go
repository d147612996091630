package names

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// How long answers from upstream are kept, how many, and how long one may take.
const (
	leastTime  = 5 * time.Second
	usualTime  = time.Minute
	longest    = 10 * time.Minute
	patience   = 10 * time.Second
	mostCached = 4096
	mostAsked  = 256 // at once
)

// cache has what upstream has said. A name is asked for once at a time.
type cache struct {
	mu    sync.Mutex
	by    map[string]*cached
	asked int
}

// cached is one answer. Its fields may be read once done is closed.
type cached struct {
	done  chan struct{}
	addrs []netip.Addr
	err   error
	until time.Time
}

// errBusy is the state in which upstream is asked for too many names.
var errBusy = errors.New("too many names are looked up")

// lookup returns what is kept, or asks.
func (c *cache) lookup(ctx context.Context, ask Lookup, now func() time.Time, name string) ([]netip.Addr, error) {
	e, err := c.entry(ask, now, name)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.done:
		return e.addrs, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// entry returns an answer, which may be one to come.
func (c *cache) entry(ask Lookup, now func() time.Time, name string) (*cached, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[name]
	if e != nil && (!e.ended() || now().Before(e.until)) {
		return e, nil
	}
	if c.asked >= mostAsked {
		return nil, errBusy
	}
	c.shrink()
	e = &cached{done: make(chan struct{})}
	c.by[name] = e
	c.asked++
	go c.ask(e, ask, now, name)
	return e, nil
}

// ended reports whether the answer is there.
func (e *cached) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// ask asks upstream. Whoever waits for it may go away.
func (c *cache) ask(e *cached, ask Lookup, now func() time.Time, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addrs, ttl, err := ask(ctx, name)
	if ttl == 0 {
		ttl = usualTime
	}
	if err != nil {
		ttl = leastTime
	}
	e.addrs = addrs
	e.err = err
	e.until = now().Add(min(max(ttl, leastTime), longest))
	close(e.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked--
}

// shrink drops any answer if there are too many.
func (c *cache) shrink() {
	for name, e := range c.by {
		if len(c.by) < mostCached {
			return
		}
		if e.ended() {
			delete(c.by, name)
		}
	}
}
