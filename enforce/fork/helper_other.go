//go:build !darwin

package fork

func sandboxMain() int { return 125 }
