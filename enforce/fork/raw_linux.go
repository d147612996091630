package fork

// rawClone is clone(2): the child runs runChild(j, r), whose code is at run, on a stack
// that ends at top, and never returns. It gives the child's pid or a negative errno.
//
//go:noescape
func rawClone(flags, top, run uintptr, j *image, r role) int
