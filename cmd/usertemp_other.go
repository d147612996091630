//go:build !darwin

package cmd

func userTemp() string { return "" }
