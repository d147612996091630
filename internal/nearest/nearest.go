package nearest

// DidYouMean returns a question that proposes the nearest name for one that does not
// exist, or "". At most a third of the letters may be wrong, and at most four; in a short
// name one may be.
func DidYouMean(typed string, names []string) string {
	for wrong := 0; wrong <= max(min(len(typed)/3, 4), 1) && len(typed) > 1; wrong++ {
		for _, name := range names {
			if near(typed, name, wrong) {
				return "; did you mean " + name + "?"
			}
		}
	}
	return ""
}

// near reports whether a becomes b if at most wrong bytes are inserted, deleted, replaced
// or swapped with the next one.
func near(a, b string, wrong int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a = a[1:]
		b = b[1:]
	}
	longer := max(len(a)-len(b), len(b)-len(a))
	if a == "" || b == "" || wrong == 0 || longer > wrong {
		return len(a)+len(b) <= wrong
	}
	swapped := len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0]
	return near(a[1:], b[1:], wrong-1) || near(a[1:], b, wrong-1) || near(a, b[1:], wrong-1) ||
		swapped && near(a[2:], b[2:], wrong-1)
}
