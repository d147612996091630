//go:build !linux

package enforce

func explainStart(err error) error { return err }
