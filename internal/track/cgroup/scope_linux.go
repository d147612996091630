package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/zsbx/zsbx/internal/procfs"
)

// A login session's control group belongs to root. Only the user's service manager can move a
// process from there into a group that the user owns: see StartTransientUnit in
// org.freedesktop.systemd1(5).

const (
	managerName = "org.freedesktop.systemd1"
	scopeWait   = 5 * time.Second // for the manager to answer and to move the process
)

// userBus connects to the user's message bus. It refuses addresses that would start a program
// or use the network. It also refuses a bus outside this PID namespace, where process numbers
// differ and the manager would move another process of the user.
func userBus(ctx context.Context) (*dbus.Conn, error) {
	uid := strconv.Itoa(os.Geteuid())
	run := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), "/run/user/"+uid)
	addr := cmp.Or(os.Getenv("DBUS_SESSION_BUS_ADDRESS"), "unix:path="+run+"/bus")
	if !strings.HasPrefix(addr, "unix:") {
		return nil, fmt.Errorf("the bus address %.100q is no local socket", addr)
	}
	c, err := dbus.Connect(addr, dbus.WithContext(ctx), dbus.WithAuth(dbus.AuthExternal(uid)))
	if err != nil {
		// When ctx ends, err only says that the connection is closed.
		return nil, fmt.Errorf("the user's message bus: %w", cmp.Or(ctx.Err(), err))
	}
	var pid uint32
	const ask = "org.freedesktop.DBus.GetConnectionUnixProcessID"
	err = c.BusObject().CallWithContext(ctx, ask, 0, c.Names()[0]).Store(&pid)
	if err == nil && int(pid) != os.Getpid() {
		err = errors.New("it is outside this PID namespace")
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("the user's message bus: %w", err)
	}
	return c, nil
}

// ProbeScope asks whether the user's service manager is on the bus.
func ProbeScope() error {
	ctx, cancel := context.WithTimeout(context.Background(), scopeWait)
	defer cancel()
	c, err := userBus(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var there bool
	err = c.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, managerName).Store(&there)
	if err != nil {
		return fmt.Errorf("the user's message bus: %w", err)
	}
	if !there {
		return errors.New("the user's service manager is not on the message bus")
	}
	return nil
}

type property struct {
	Name  string
	Value dbus.Variant
}

// StartScope makes the manager put pid into a new scope, limited and delegated to the user. It
// waits until the process is there, since the manager replies before it has moved it.
func StartScope(id string, pid int, l Limits) (*Group, error) {
	ctx, cancel := context.WithTimeout(context.Background(), scopeWait)
	defer cancel()
	c, err := userBus(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	props := []property{
		{"Description", dbus.MakeVariant("zsbx session " + id)},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(pid)})},
		{"Delegate", dbus.MakeVariant(true)},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
	for _, s := range l.settings() {
		props = append(props, property{s.property, dbus.MakeVariant(s.value)})
	}
	none := []struct { // other units to start
		Name  string
		Props []property
	}{}
	o := c.Object(managerName, "/org/freedesktop/systemd1")
	call := o.CallWithContext(ctx, managerName+".Manager.StartTransientUnit", 0, scopeName(id), "fail", props, none)
	if call.Err != nil {
		return nil, fmt.Errorf("asking the user's service manager for a scope: %w", call.Err)
	}
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		if g := scopeOf(pid, id); g != nil {
			return g, g.limited(l)
		}
		if ctx.Err() != nil {
			return nil, errors.New("the user's service manager did not move the command into its scope in time")
		}
		time.Sleep(wait)
	}
}

// scopeOf returns the scope's group once pid is in it.
func scopeOf(pid int, id string) *Group {
	dirs, _ := dirs(procfs.Path(pid, "cgroup"))
	for _, d := range dirs {
		if g, err := at(d); err == nil && filepath.Base(d) == scopeName(id) {
			g.Unit = scopeName(id)
			return g
		}
	}
	return nil
}
