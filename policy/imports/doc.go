// Package imports turns the settings of other sandboxes into policies: srt's,
// Zed's, codex's, landrun's command lines and firejail's profiles. It looks at
// text alone. What zsbx can't say is listed with the reason, and is never wider
// than it was.
package imports
