// Package imports turns the settings of other sandboxes into policies: srt's,
// Zed's and codex's. It looks at text alone. What zsbx can't say is listed with the
// reason, and narrower than it was. Paths that are missing are skipped.
package imports
