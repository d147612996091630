package units

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "0.0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "5": 5 * time.Second, "0.5": 500 * time.Millisecond,
		".5": 500 * time.Millisecond, "1ms": time.Millisecond, "9223372036": 9223372036 * time.Second,
	} {
		if got, err := ParseTime(in); got != want || err != nil {
			t.Errorf("ParseTime(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", ".", "s", "-1s", "-1", "+", "soon", "1d", "1e3", "1e30", "NaN", "Inf", "0x10", "1_0", "1 s", "1..5", "9223372037", "0.0000000001", "0.1ns",
	} {
		if got, err := ParseTime(in); err == nil {
			t.Errorf("ParseTime(%q) = %v", in, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "12": 12, "12B": 12, "4096b": 4096, "1KiB": 1024, "10k": 10_000, "3KB": 3000, "3kB": 3000, "64KiB": 64 << 10, "2Ki": 2 << 10,
		"2MiB": 2 << 20, "1mib": 1 << 20, "10M": 10_000_000, "5MB": 5e6, "1GiB": 1 << 30, "2G": 2e9, "1GB": 1e9, "1TiB": 1 << 40, "3T": 3e12,
		"9223372036854775807": 1<<63 - 1, "8589934591GiB": (1<<33 - 1) << 30,
	} {
		if got, err := ParseSize(in); got != want || err != nil {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "B", "MiB", "-1", "+1", "1.5M", "10X", "1i", "1ib", "1kk", "1 k", "1 MiB", "0x10", "1_000", "9223372036854775808", "8589934592GiB", "99999999TiB",
	} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %d", in, got)
		}
	}
}

func TestParseCPU(t *testing.T) {
	for in, want := range map[string]int64{
		"1": 1000, "0": 0, "0.5": 500, "1.5": 1500, "64": 64000, "0.01": 10, ".25": 250, "2.": 2000,
		"": -1, "x": -1, "-1": -1, "0.001": -1, "1e3": -1, "inf": -1, "NaN": -1, "0x1": -1, "1_0": -1, "10000000": -1, "1 ": -1,
	} {
		got, err := ParseCPU(in)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, %v; want %d", in, got, err, want)
		}
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1.0 KiB", 1500: "1.5 KiB", 20000: "20 KiB", 999 << 10: "999 KiB",
		1000 << 10: "1.0 MiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8388608 TiB",
	} {
		if got := Short(n); got != want {
			t.Errorf("Short(%d) = %s, not %s", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1204: "1,204", 1002003: "1,002,003"} {
		if got := Thousands(n); got != want {
			t.Errorf("Thousands(%d) = %s, not %s", n, got, want)
		}
	}
}
