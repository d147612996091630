//go:build !linux

package cmd

func closeInherited() {}

func enoughFiles() error { return nil }
