package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a time as policies and flags have it: a number of seconds, as
// timeout(1) takes it ("90", "0.5"), or numbers with units, as
// [time.ParseDuration] does ("90s", "10m", "1h30m"). "0" is no limit.
func ParseTime(s string) (time.Duration, error) {
	if s != "" && strings.Trim(s, "0123456789.") == "" {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil || d < 0:
		return 0, errors.New("a time is a number of seconds, or one with a unit, such as 90s, 10m or 1h30m")
	case d == 0 && strings.ContainsAny(s, "123456789"):
		return 0, errors.New("the time is less than a nanosecond")
	}
	return d, nil
}

// ParseSize reads a number of bytes as policies and flags have it, with a unit or
// without: k, M, G, T are powers of 1000, Ki, Mi, Gi, Ti powers of 1024, in
// either case, and "B" may follow ("65536", "100kB", "10MiB"). "0" is no limit.
func ParseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "BbIiKkMmGgTt")
	n, err := strconv.ParseUint(digits, 10, 63)
	factor := map[string]uint64{
		"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	}[strings.TrimSuffix(strings.ToLower(s[len(digits):]), "b")]
	switch {
	case err != nil || factor == 0:
		return 0, errors.New("a size is a number of bytes, such as 65536, 100kB or 10MiB")
	case n > math.MaxInt64/factor:
		return 0, errors.New("the size is too large")
	}
	return int64(n * factor), nil
}

// FormatSize writes a number of bytes as people do, in powers of 1024.
func FormatSize(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; i < len(units)-1 && n >= 1024 && n%1024 == 0; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, units[i])
}

// Short writes a number of bytes for people, such as 5 bytes, 1.5 KiB or 20 MiB.
func Short(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	size := float64(n)
	unit := ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		size /= 1024
		if size < 1000 {
			break
		}
	}
	if size < 10 {
		return fmt.Sprintf("%.1f %s", size, unit)
	}
	return fmt.Sprintf("%.0f %s", size, unit)
}

// Thousands writes a number with commas between its thousands.
func Thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", Thousands(n/1000), n%1000)
}

// Processor is the time of one processor, in the unit of ParseCPU.
const Processor = 1000

// ParseCPU reads a number of processors, whole or not ("2", "0.5"), in thousandths of
// one. The least that the kernel knows is a hundredth. "0" is no limit.
func ParseCPU(s string) (int64, error) {
	n, err := strconv.ParseFloat(s, 64)
	milli := int64(math.Round(n * Processor))
	if err != nil || strings.Trim(s, "0123456789.") != "" || n > 1e6 || n != 0 && milli < Processor/100 {
		return 0, errors.New("a number of processors is needed, such as 2 or 0.5")
	}
	return milli, nil
}

// ParsePort reads a TCP port. A conversion to uint16 would turn 70000 into 4464.
func ParsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("a port is a number from 1 to 65535")
	}
	return uint16(n), nil
}

// ParseCount reads a number of processes and threads.
func ParseCount(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, errors.New("a number of processes and threads is needed, such as 200")
	}
	return int64(n), nil
}
