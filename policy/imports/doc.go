// Package imports turns the settings of other sandboxes into policies: srt's,
// Zed's, codex's, landrun's command lines and firejail's profiles. It looks at
// text alone. What zsbx can't say is listed with the reason. It is narrower than it
// was, but for firejail's noexec. Paths that are missing are skipped.
package imports
