//go:build !linux

package enforce_test

func act(string, []string) int { return exitNoAct }
