package policy

import (
	"slices"
	"strings"
)

// What macOS needs beside lists of paths. Nothing here asks which system this
// is: a policy for a Mac is resolved and tested anywhere.

// home finds the home directory in the kernel's spelling.
func (rs *resolver) home() {
	if rs.host.OS != "macos" || rs.host.Home == "" {
		return
	}
	rs.r.RealHome = rs.host.Home
	rs.w.exact = true
	if pl, err := rs.w.walk(rs.host.Home); err == nil {
		rs.r.RealHome = pl.path
	}
	rs.w.exact = false
}

// wholeApp widens a rule of the baseline's that leads to the developer directory
// inside of an Xcode to all that this Xcode reads of itself: the shims in
// /usr/bin stop where its Info.plist or its SharedFrameworks are closed. Where
// the rule leads is not known before, as it may be by xcode-select(1)'s link or
// by DEVELOPER_DIR, which may name the .app too (xcrun(1)).
func (rs *resolver) wholeApp(p *Path) {
	app := strings.TrimSuffix(strings.TrimSuffix(p.Path, "/Developer"), "/Contents")
	if !strings.HasSuffix(app, ".app") || p.Access&Exec == 0 {
		return
	}
	if pl, err := rs.w.walk(app + "/Contents"); err == nil && pl.gone == "" && pl.path == app+"/Contents" {
		p.Path, p.Mode, p.ID = pl.path, pl.stat.Mode.Type(), pl.stat.ID
	}
}

// javaHome is the JDK to use on a Mac where JAVA_HOME does not say: the newest
// by name of the first directory of JDKs that has one, "" for none. /usr/bin/java would look
// for one through Spotlight, which answers nobody in a sandbox.
func (h *Host) javaHome() string {
	if h.ReadDir == nil {
		return ""
	}
	for _, place := range places("jdks macos") {
		dir := h.place(place)
		entries, _ := h.ReadDir(dir)
		best, newest := "", -1
		for _, e := range entries {
			home := dir + "/" + e.Name() + "/Contents/Home"
			if _, st, err := h.RealPath(home); err == nil && st.Mode.IsDir() && firstNumber(e.Name()) > newest {
				best, newest = home, firstNumber(e.Name())
			}
		}
		if best != "" {
			return best
		}
	}
	return ""
}

// java sets JAVA_HOME on a Mac where Java is in use and nobody has said which.
func (f *envFilter) java(h *Host, presets []Named) {
	jvm := func(n Named) bool { return strings.TrimSuffix(n.Value, toolsOnly) == "jvm" }
	if h.OS != "macos" || f.mode == EnvVars || f.vars["JAVA_HOME"].value != "" || !slices.ContainsFunc(presets, jvm) {
		return
	}
	if home := h.javaHome(); home != "" {
		f.vars["JAVA_HOME"] = envVar{home, true}
	}
}

// firstNumber is the first number in a name, 0 without one: of "temurin-21.jdk"
// 21, and of "jdk1.8.0_292.jdk" 1.
func firstNumber(name string) int {
	n := 0
	for i, seen := 0, false; i < len(name) && n < 1e6; i++ {
		digit := name[i] >= '0' && name[i] <= '9'
		if seen && !digit {
			break
		}
		if digit {
			n, seen = 10*n+int(name[i]-'0'), true
		}
	}
	return n
}
