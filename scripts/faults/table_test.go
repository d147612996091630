//go:build linux && amd64

package faults

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// table counts the cases of each part by their class.
type table struct {
	mu    sync.Mutex
	order []string
	n     map[string]*[classes]int
}

// row makes a part's row, which is shown even if nothing is counted.
func (t *table) row(part string) *[classes]int {
	if t.n == nil {
		t.n = map[string]*[classes]int{}
	}
	if !slices.Contains(t.order, part) {
		t.order = append(t.order, part)
		t.n[part] = &[classes]int{}
	}
	return t.n[part]
}

func (t *table) add(part string, c class) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row(part)[c]++
}

// bad returns how many cases went wrong.
func (t *table) bad() (n int) {
	for _, row := range t.n {
		for c, k := range row {
			if class(c).bad() {
				n += k
			}
		}
	}
	return n
}

func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "\n%-20s %6s", "", "cases")
	for c := range classes {
		fmt.Fprintf(w, " %10s", c)
	}
	fmt.Fprintln(w)
	for _, part := range t.order {
		sum := 0
		for _, k := range t.n[part] {
			sum += k
		}
		fmt.Fprintf(w, "%-20s %6d", part, sum)
		for _, k := range t.n[part] {
			fmt.Fprintf(w, " %10d", k)
		}
		fmt.Fprintln(w)
	}
}
