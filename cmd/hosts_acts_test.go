package cmd

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
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
	"get": actGet,
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
