package nofile

// atStart is the limit, soft and hard; 0 and 0 if it is not known.
var atStart = read()

// AtStart returns the soft and the hard limit that the process was started with. known is
// false if getrlimit(2) failed.
func AtStart() (soft, hard uint64, known bool) {
	return atStart[0], atStart[1], atStart != [2]uint64{}
}

// getrlimit calls getrlimit(2) for RLIMIT_NOFILE and returns its result.
//
//go:noescape
func getrlimit(lim *[2]uint64) int64

func read() [2]uint64 {
	var lim [2]uint64
	if getrlimit(&lim) != 0 {
		return [2]uint64{}
	}
	return lim
}
