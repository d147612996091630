package cmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/zsbx/zsbx/internal/enforce/hosts"
	"github.com/zsbx/zsbx/internal/shell"
)

// connectWord is the first argument of the command that ssh(1) executes in a session to reach a host by
// the session's proxy. It is in no help, and reads no settings, which may be closed to it.
const connectWord = "connect"

// connectTime is how long the proxy may take to connect.
const connectTime = time.Minute

// connect joins in and out with a host, by the proxy that the environment names.
func connect(env, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return usageHint("", "zsbx connect needs a host and a port")
	}
	to := net.JoinHostPort(args[0], args[1])
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	conn, err := hosts.Through(ctx, env, to)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", shell.Quote(to), err)
	}
	defer conn.Close()
	go func() {
		_, err := io.Copy(conn, in)
		if half, ok := conn.(*net.TCPConn); ok && err == nil {
			_ = half.CloseWrite() // harmless: the other end has gone
		}
	}()
	_, err = io.Copy(out, conn)
	return err
}
