// Package imports turns the settings of other sandboxes into policies: srt's,
// Zed's, codex's, landrun's command lines and firejail's profiles. It looks only at
// text. What zsbx can't express is listed with the reason, and becomes narrower than it
// was, except firejail's noexec. Missing paths are skipped.
package imports
