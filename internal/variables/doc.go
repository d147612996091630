// Package variables says what the name of an environment variable, or its value, tells about it:
// whether it may be a secret, or makes programs load other code.
package variables
