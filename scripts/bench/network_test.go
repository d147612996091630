package bench

import (
	"fmt"
	"net"
	"runtime"
	"strings"
)

// network measures sockets without zsbx, with the network open, without it, and by name.
func (b *bench) network() {
	if runtime.GOOS != "linux" {
		return
	}
	const bytes = 2 << 30
	greets := serve(func(c net.Conn) { _, _ = c.Write([]byte("x")) })
	sends := serve(func(c net.Conn) {
		piece := make([]byte, 1<<18)
		for sent := 0; sent < bytes; sent += len(piece) {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	})
	ways := [][]string{
		{},
		b.run("--rox", b.probe, "--net", "--"),
		b.run("--rox", b.probe, "--no-net", "--"),
		b.run("--rox", b.probe, "--allow-host", "localhost:"+port(greets), "--allow-host", "localhost:"+port(sends), "--"),
	}
	fmt.Print("\nSockets, in µs (least / median), connections a second, Gbit/s\n\n",
		"| | bare | --net | --no-net | --allow-host |\n|---|--:|--:|--:|--:|\n")
	for _, row := range []struct {
		names   []string
		outside bool
		probe   []string
	}{
		{[]string{"the first UDP socket", "another"}, false, []string{"sockets"}},
		{[]string{"connect(2) to an own server"}, false, []string{"own"}},
		{[]string{"connect(2) to a server outside", "its first byte"}, true, []string{"connects", greets}},
		{[]string{"connections a second, 50 at a time"}, true, []string{"storm", greets}},
		{[]string{"a download, Gbit/s"}, true, []string{"download", sends, fmt.Sprint(bytes)}},
	} {
		cells := make([][]string, len(row.names))
		for i, way := range ways {
			got := make([]string, len(row.names))
			if noNetwork := i == 2; !noNetwork || !row.outside {
				argv := append(way, b.probe)
				got = strings.Split(output(b.command(append(argv, row.probe...)...)), "|")
			}
			for k := range cells {
				cells[k] = append(cells[k], got[k])
			}
		}
		for k, name := range row.names {
			fmt.Printf("| %s | %s |\n", name, strings.Join(cells[k], " | "))
		}
	}
}

// serve serves on localhost until this process ends, and returns where.
func serve(f func(net.Conn)) string {
	l := get(net.Listen("tcp4", "127.0.0.1:0"))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	return l.Addr().String()
}

func port(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
}
