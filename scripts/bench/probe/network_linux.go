package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	probes["connects"] = connects
	probes["own"] = own
	probes["storm"] = storm
	probes["download"] = download
	probes["sockets"] = sockets
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// middle returns the least and the middle of some times, in microseconds.
func middle(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("%.0f / %.0f", us(all[0]), us(all[len(all)/2]))
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// connects prints how long a connection takes, and the first byte from its beginning, by sockets that
// block.
func connects(args []string) {
	const n = 2000
	connected, got := times(args[0], n)
	fmt.Printf("%s|%s", middle(connected), middle(got))
}

func times(address string, n int) (connected, got []time.Duration) {
	addr := must(net.ResolveTCPAddr("tcp4", address))
	to := &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
	for range n {
		fd := must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
		start := time.Now()
		must(0, unix.Connect(fd, to))
		connected = append(connected, time.Since(start))
		must(unix.Read(fd, make([]byte, 1)))
		got = append(got, time.Since(start))
		must(0, unix.Close(fd))
	}
	return connected, got
}

// own prints how long a connection to a server of its own takes.
func own([]string) {
	const n = 2000
	l := must(net.Listen("tcp4", "127.0.0.1:0"))
	go func() {
		for {
			c := must(l.Accept())
			_, _ = c.Write([]byte("x"))
			c.Close()
		}
	}()
	connected, _ := times(l.Addr().String(), n)
	fmt.Print(middle(connected))
}

// storm prints how many connections a second are made, 50 at a time, and how many fail.
func storm(args []string) {
	const seconds = 3
	var made, failed atomic.Int64
	end := time.Now().Add(seconds * time.Second)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for time.Now().Before(end) {
				count := &failed
				c, err := net.Dial("tcp4", args[0])
				if err == nil {
					_, err = io.ReadFull(c, make([]byte, 1))
					c.Close()
				}
				if err == nil {
					count = &made
				}
				count.Add(1)
			}
		})
	}
	all.Wait()
	fmt.Printf("%d, %d fail", made.Load()/seconds, failed.Load())
}

// download prints how fast a server's bytes come, in Gbit/s.
func download(args []string) {
	c := must(net.Dial("tcp4", args[0]))
	n := must(strconv.ParseInt(args[1], 10, 64))
	start := time.Now()
	must(io.CopyN(io.Discard, c, n))
	fmt.Printf("%.1f", float64(n)*8/1e9/time.Since(start).Seconds())
}

// sockets prints how long the first UDP socket takes, and the next ones.
func sockets([]string) {
	var all []time.Duration
	for range 500 {
		start := time.Now()
		fd := must(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
		all = append(all, time.Since(start))
		must(0, unix.Close(fd))
	}
	first := us(all[0])
	fmt.Printf("%.0f|%s", first, middle(all[1:]))
}
