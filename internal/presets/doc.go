// Package presets lists the built-in presets and how each is detected. Package policy has their rules.
package presets
