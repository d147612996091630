package policy

// Nearest is the name that was probably meant by one that there is not, or "": at
// most a third of its letters are wrong, or one of a short name's. Two letters that
// changed places count as one.
func Nearest(typed string, names []string) string {
	best, at := "", max(len(typed)/3, 1)+1
	if len(typed) < 2 {
		return ""
	}
	for _, name := range names {
		if d := distance(typed, name); d < at {
			best, at = name, d
		}
	}
	return best
}

// didYouMean asks whether the nearest name was meant, or is "".
func didYouMean(typed string, names []string) string {
	if n := Nearest(typed, names); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// distance is the number of bytes to insert, delete, substitute or swap with the
// next one that makes b of a.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			next[j+1] = min(row[j+1], next[j]) + 1
			if a[i] == b[j] {
				next[j+1] = row[j]
			} else {
				next[j+1] = min(next[j+1], row[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
