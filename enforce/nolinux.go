//go:build !linux

package enforce

import "os"

func explainStart(err error) error { return err }

func inheritsSockets([]*os.File) bool { return false }

func probeNamespaces(*Caps) {}

func lateHint(error) string { return "" }

// readSmall reads a file of procfs, which only Linux has.
func readSmall(string) string { return "" }
