package cmd

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// hostsAct is the first argument with which the test binary does one act on the network and ends.
const hostsAct = "hosts-act"

// doHostsAct does an act and returns the exit status.
func doHostsAct(name string, args []string) int {
	do, is := hostsActs[name]
	if !is {
		fmt.Fprintln(os.Stderr, "no such act:", name)
		return 98
	}
	if err := do(args); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// hostsActs are the acts. Each prints what it got, or returns an error.
var hostsActs = map[string]func([]string) error{
	"get":  actGet,
	"dial": actDial,
}

// actGet asks as programs in Go do.
func actGet(a []string) error {
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	r, err := c.Get(a[0])
	if err != nil {
		return err
	}
	b, err := io.ReadAll(r.Body)
	fmt.Println(strings.TrimSpace(string(b)))
	return err
}

// actDial connects, sends each further argument, in which a backslash is as in Go, and prints what
// comes back in a while.
func actDial(a []string) error {
	c, err := net.Dial("tcp", a[0])
	if err != nil {
		return err
	}
	defer c.Close()
	for _, text := range a[1:] {
		text, err := strconv.Unquote(`"` + text + `"`)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
	}
	return printAnswer(c)
}

// printAnswer prints what a server sends until it pauses.
func printAnswer(c net.Conn) error {
	b := make([]byte, 65536)
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
	n, err := c.Read(b)
	fmt.Printf("%.300q\n", b[:n])
	return err
}
