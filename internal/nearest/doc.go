// Package nearest proposes the name that somebody may have meant.
package nearest
