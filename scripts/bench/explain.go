package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// opens opens a file again and again, and prints how many nanoseconds one takes.
const opens = `package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	start := time.Now()
	for range n {
		if fd, err := syscall.Open(os.Args[1], syscall.O_RDONLY, 0); err == nil {
			syscall.Close(fd)
		}
	}
	fmt.Println(time.Since(start).Nanoseconds() / int64(n))
}
`

// explain measures what --explain costs while a command runs: an open, allowed and
// refused, and the processor's time of programs that open much.
func (b *bench) explain() error {
	open := filepath.Join(b.dir, "opens")
	if err := compile(open, opens); err != nil {
		return err
	}
	secret := filepath.Join(b.dir, "home", "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		return err
	}
	tree := filepath.Join(b.work(), "small")
	for i := range 200 {
		dir := filepath.Join(tree, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for k := range 100 {
			if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(k)), nil, 0o644); err != nil {
				return err
			}
		}
	}
	makefile := "all:\n\tfor i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sh -c 'cat Makefile >/dev/null'; done\n"
	if err := os.WriteFile(filepath.Join(b.work(), "Makefile"), []byte(makefile), 0o644); err != nil {
		return err
	}
	if err := b.own(); err != nil {
		return err
	}
	fmt.Print("\nAn open, and a close if it succeeds\n\n| file | zsbx run | zsbx run --explain |\n|---|--:|--:|\n")
	for _, f := range []struct{ what, path string }{{"allowed", "/etc/passwd"}, {"refused", secret}} {
		var took [2]time.Duration
		for i, more := range [][]string{nil, {"--explain"}} {
			var err error
			if took[i], err = b.opening(open, f.path, more); err != nil {
				return err
			}
		}
		fmt.Printf("| %s | %.1f µs | %.1f µs |\n", f.what, us(took[0]), us(took[1]))
	}
	fmt.Print("\nProcessor time with --explain\n\n| work | zsbx run | to that, with --explain |\n|---|--:|--:|\n")
	for _, argv := range [][]string{{"find", tree, "-name", "99"}, {"make", "-s"}} {
		plain := &program{name: argv[0], argv: b.run(argv...), dir: b.work()}
		with := &program{name: argv[0] + " --explain", dir: b.work()}
		with.argv = append([]string{b.zsbx, "run", "--explain", "--rw", "."}, argv...)
		if err := b.race(10, plain, with); err != nil {
			return err
		}
		fmt.Printf("| %s | %.1f ms | %.2f |\n", argv[0], ms(plain.cpu)/10, ms(with.cpu)/ms(plain.cpu))
	}
	return nil
}

// opening is how long one open takes inside.
func (b *bench) opening(open, path string, more []string) (time.Duration, error) {
	argv := append([]string{b.zsbx, "run", "--rw", ".", "--rox", filepath.Dir(open)}, more...)
	argv = append(argv, "--deny", filepath.Join(b.dir, "home", "secret"), open, path, "1000")
	c := b.command(b.work(), argv...)
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(out)))
	return time.Duration(n), err
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// compile makes a program of its source.
func compile(file, source string) error {
	src := file + ".go"
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		return err
	}
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, src)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	return nil
}
