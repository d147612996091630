// Package syntax has the rules for what is written in a policy: paths, denials, variables, names.
// It looks at nothing but the text.
package syntax
