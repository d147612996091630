//go:build !linux

package attack_test

func act(string, []string) int { return exitNoAct }
