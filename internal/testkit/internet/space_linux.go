package internet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options are what differs between tests.
type Options struct {
	Dir    string // for files; the log is in it
	Resolv string // more lines of resolv.conf
	Hosts  string // more lines of /etc/hosts
	NSS    string // where nsswitch.conf looks for hosts; "" for "files dns"
}

// Log is the path of the log.
func (o Options) Log() string { return filepath.Join(o.Dir, "log") }

// failed is the exit status if there can be no such internet.
const failed = 99

// variable has the options, for the process that makes the internet.
const variable = "ZSBX_TEST_INTERNET"

// Command returns a command that runs argv in an internet of its own.
func Command(o Options, argv ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, argv...)
	c.Env = append(c.Environ(), variable+"="+string(b))
	c.Env = slices.DeleteFunc(c.Env, func(e string) bool {
		name, _, _ := strings.Cut(strings.ToLower(e), "=")
		return strings.HasSuffix(name, "_proxy")
	})
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		gid := os.Getgid()
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		c.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_NET_BIND_SERVICE}
	}
	return c, nil
}

// Inside does not return in a process that Command has started: it makes the internet, runs the
// command there, and exits as that does.
func Inside() {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	os.Unsetenv(variable)
	var o Options
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = enter(o)
	}
	if err == nil {
		err = runThere(os.Args[1:])
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(max(exit.ExitCode(), 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "internet:", err)
		os.Exit(failed)
	}
	os.Exit(0)
}

// enter makes the addresses and files, and starts the servers.
func enter(o Options) error {
	if err := setAddresses(); err != nil {
		return err
	}
	ca, err := newIssuer()
	if err != nil {
		return err
	}
	nss := o.NSS
	if nss == "" {
		nss = "files dns"
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for path, text := range map[string]string{
		"/etc/resolv.conf":                   "nameserver " + NameServer + "\n" + o.Resolv + "\n",
		"/etc/hosts":                         "127.0.0.1 localhost\n::1 localhost\n" + o.Hosts + "\n",
		"/etc/nsswitch.conf":                 "passwd: files\ngroup: files\nhosts: " + nss + "\n",
		"/etc/ssl/certs/ca-certificates.crt": string(ca.pem),
	} {
		if err := replace(o.Dir, path, text); err != nil {
			return err
		}
	}
	out, err := os.OpenFile(o.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	return (&servers{out: out, issuer: ca}).serve()
}

// replace puts a file over another one.
func replace(dir, path, text string) error {
	file := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if err := unix.Mount(file, real, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount on %s: %w", real, err)
	}
	return nil
}

// runThere runs a command without the capabilities that made the internet. An ordinary user has
// none then; root keeps root's.
func runThere(argv []string) error {
	runtime.LockOSThread() // the command is forked by this thread
	if os.Getuid() != 0 {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return err
		}
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin = os.Stdin
	c.Stdout = os.Stdout
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := c.Run()
	time.Sleep(20 * time.Millisecond) // for what the servers have not logged yet
	return err
}

// setAddresses sets the loopback device up and gives it all addresses.
func setAddresses() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	link, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(link)
	for _, a := range addresses {
		if err := addAddress(link, netip.MustParsePrefix(a)); err != nil {
			return fmt.Errorf("add %s: %w", a, err)
		}
	}
	return awaitAddress(addresses[len(addresses)-1])
}

// awaitAddress waits until there is a route to an address of IPv6, which the kernel makes later.
func awaitAddress(prefix string) error {
	to := netip.AddrPortFrom(netip.MustParsePrefix(prefix).Addr(), 53)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			return err
		}
	}
}

// addAddress gives the loopback device an address, by a message of rtnetlink(7).
func addAddress(link int, p netip.Prefix) error {
	family := byte(unix.AF_INET)
	if p.Addr().Is6() {
		family = unix.AF_INET6
	}
	addr := p.Addr().AsSlice()
	body := []byte{family, byte(p.Bits()), unix.IFA_F_NODAD, 0}
	body = binary.NativeEndian.AppendUint32(body, 1) // the device
	for _, kind := range []uint16{unix.IFA_LOCAL, unix.IFA_ADDRESS} {
		body = binary.NativeEndian.AppendUint16(body, uint16(4+len(addr)))
		body = binary.NativeEndian.AppendUint16(body, kind)
		body = append(body, addr...)
	}
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWADDR)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	m = append(m, make([]byte, 8)...)
	if _, err := unix.Write(link, append(m, body...)); err != nil {
		return err
	}
	got := make([]byte, 512)
	n, err := unix.Read(link, got)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return errors.New("a short answer")
	}
	if errno := -int32(binary.NativeEndian.Uint32(got[unix.SizeofNlMsghdr:])); errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}

// hole listens on port 2222 of one address and takes no connection: when its queue is full, others
// wait for an answer that does not come.
func (s *servers) hole() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	at := &unix.SockaddrInet4{Port: 2222, Addr: netip.MustParseAddr(strings.Join(zone["hole.example"], "")).As4()}
	if err := unix.Bind(fd, at); err != nil {
		return err
	}
	if err := unix.Listen(fd, 0); err != nil {
		return err
	}
	for range 2 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		_ = unix.Connect(c, at)
	}
	return nil
}
