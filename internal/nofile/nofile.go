package nofile

// atStart is the limit, soft and hard; 0 and 0 when it is not known.
var atStart = read()

// AtStart gives the soft and the hard limit that the process was started with;
// known is false on systems where nobody asked.
func AtStart() (soft, hard uint64, known bool) {
	return atStart[0], atStart[1], atStart != [2]uint64{}
}
