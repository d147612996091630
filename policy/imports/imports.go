package imports

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// keyFile says what becomes of each key: format, key, and a verb of value, with a
// reason where that is "-". A "+" stands before what a format says by itself.
//
//go:embed keys.txt
var keyFile string

// Left is one setting that was not taken over as it is.
type Left struct {
	Place string // a key, or a line's number and the line
	Why   string
}

// Result is what became of a file.
type Result struct {
	Policy *policy.Policy
	Left   []Left // in the order of the file, or of the keys
}

// setting is one key of a file.
type setting struct {
	key    string         // as in keys.txt
	place  string         // as people find it
	values []string       // "$" is "$$" and a variable ${NAME}, as in a policy's paths
	bad    string         // an item that is no text
	to     *policy.Policy // the part for one system that it stands in, else all of it
}

// Formats are the names of the formats.
func Formats() []string { return []string{"srt", "zed", "codex", "landrun", "firejail"} }

// Detect guesses the format of a file by its name and content; "" for unknown.
func Detect(name string, data []byte) string {
	for _, sign := range []struct{ format, suffix, word string }{
		{"codex", ".toml", "sandbox_mode"}, {"firejail", ".profile", "firejail"}, {"zed", "", `"terminal"`}, {"srt", "", `"filesystem"`}, {"srt", "", `"network"`}, {"landrun", "", "landrun "},
	} {
		if sign.suffix != "" && strings.HasSuffix(name, sign.suffix) || strings.Contains(string(data), sign.word) {
			return sign.format
		}
	}
	return ""
}

// reader fills a Result.
type reader struct {
	Result
	format   string
	name     string
	required bool // the paths of rules have to be there
	errs     policy.Errors
}

// Read makes a policy of a file in one of the formats. The errors name the
// place, and are all that is wrong with what is taken over.
func Read(format, name string, data []byte) (*Result, error) {
	r := &reader{format: format, name: name, Result: Result{Policy: &policy.Policy{}}}
	read := map[string]func([]byte) ([]setting, error){"srt": r.tree, "zed": r.tree, "codex": r.tree, "landrun": r.landrun, "firejail": r.firejail}[format]
	if read == nil {
		return nil, fmt.Errorf("unknown format %q: there are %s", format, strings.Join(Formats(), ", "))
	}
	r.begin(format)
	settings, err := read(data)
	if err != nil {
		return nil, policy.Errors{{Origin: policy.Origin{Source: name}, Code: policy.CodeSyntax, Msg: "as " + format, Err: err}}
	}
	for _, s := range settings {
		if s.to == nil {
			s.to = r.Policy
		}
		r.apply(s)
	}
	if r.errs != nil {
		return nil, r.errs
	}
	return &r.Result, nil
}

// line finds a line of keys.txt that begins with words, and gives the rest of it.
func line(words string) (rest string, ok bool) {
	for l := range strings.Lines(keyFile) {
		if rest, ok = strings.CutPrefix(strings.TrimSpace(l), words+" "); ok {
			return rest, true
		}
	}
	return "", false
}

// begin says what a format does by itself, and reports whether there is such a one.
func (r *reader) begin(format string) bool {
	rest, ok := line("+" + format)
	for f := strings.Fields(rest); len(f) > 2; f = f[3:] {
		r.value(setting{place: f[0], to: r.Policy}, f[1], f[2])
	}
	return ok
}

// verb finds a key in keys.txt. What stands below one that is not taken over is
// not either.
func (r *reader) verb(key string) (verb, why string) {
	rest, ok := line(r.format + " " + key)
	for i := len(key); !ok; {
		if i = strings.LastIndexByte(key[:i], '.'); i < 0 {
			if rest, ok = line(r.format + " *"); !ok {
				return "-", "zsbx does not know it"
			}
		} else if rest, ok = line(r.format + " " + key[:i]); ok {
			ok = strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "=") || rest == "set"
		}
	}
	verb, why, _ = strings.Cut(rest, " ")
	return verb, why
}

// apply does what the verb of a setting's key says.
func (r *reader) apply(s setting) {
	switch verb, why := r.verb(s.key); {
	case verb == "=" || verb == "-" && (len(s.values) == 0 || s.values[0] == "false"):
	case verb == "-":
		r.left(s.place, why)
	case s.bad != "":
		r.fail(s.place, "a list of strings is needed, and it has %s", s.bad)
	default:
		if strings.HasPrefix(verb, "fs.") {
			_ = s.to.Put(verb) // an empty list says something, too
		}
		if verb == "vars" {
			s.mode("none", r.origin(s.place))
		}
		for _, v := range s.values {
			r.value(s, verb, v)
		}
	}
}

// mode passes the variables that a mode does, or less where a key before said so.
func (s *setting) mode(name string, from policy.Origin) {
	m := map[string]policy.EnvMode{"none": policy.EnvVars, "core": policy.EnvScrubbed, "all": policy.EnvSanitized}[name]
	width := []policy.EnvMode{policy.EnvVars, policy.EnvScrubbed, policy.EnvSanitized, ""}
	if e := &s.to.Env; slices.Index(width, m) < slices.Index(width, e.Mode) {
		e.Mode, e.From = m, from
	}
}

// narrow takes an access from the rules for a path, and reports whether any had it.
func (s *setting) narrow(path string, access policy.Access) (had bool) {
	for i := range s.to.FS.Rules {
		if rule := &s.to.FS.Rules[i]; rule.Path == path && rule.Access&access != 0 {
			rule.Access, had = rule.Access&^access, true
		}
	}
	return had
}

// value does for one value what a verb says, or adds it to a key of policies.
func (r *reader) value(s setting, verb, v string) {
	switch verb {
	case "everywhere":
		r.value(s, "fs.rw", "/")
	case "deny-write":
		r.value(s, "fs.deny", v)
		r.left(s.place+" "+v, "zsbx can't take writing alone away: it is denied wholly")
	case "read-only":
		if !s.narrow(v, policy.Write) && strings.HasPrefix(v, "~/") {
			r.value(s, "deny-write", v)
		}
	case "noexec":
		if !s.narrow(v, policy.Exec) {
			r.left(s.place, "files can be executed where a rule says so: use rw_noexec for a directory of its own")
		}
	case "inherit":
		s.mode(v, r.origin(s.place))
	case "exclude":
		r.left(s.place+" "+v, "no variable is taken away by name: the environment is scrubbed")
		s.mode("core", r.origin(s.place))
	case "set":
		r.value(s, "env", s.key[strings.LastIndexByte(s.key, '.')+1:]+"="+v)
	case "env", "vars":
		switch name, value, set := strings.Cut(strings.ReplaceAll(v, "$$", "\x00"), "="); {
		case strings.Contains(value, "${"):
			r.left(s.place+" "+name, "a policy's values are not expanded: pass it with --env")
		case set:
			r.put(s, "env.set", name+"="+strings.ReplaceAll(value, "\x00", "$"))
		default:
			r.put(s, "env.allow", name)
		}
	default:
		switch path := strings.HasPrefix(verb, "fs."); {
		case path && verb != "fs.deny" && strings.ContainsAny(v, "*?["):
			r.left(s.place+" "+v, "rules take no patterns, only denials do")
			return
		case path && v != "/":
			v = strings.TrimRight(v, "/")
		case strings.HasSuffix(verb, "_tcp"):
			v = strings.TrimSpace(v)
		}
		r.put(s, verb, v)
	}
}

// put adds a value to a key of policies.
func (r *reader) put(s setting, key, v string) {
	optional := !r.required && !strings.HasPrefix(key, "env.") // paths alone may be missing
	if err := s.to.Put(key, policy.Named{Value: v, Optional: optional, Origin: r.origin(s.place)}); err != nil {
		r.fail(s.place, "%q: %v", v, err)
	}
}

func (r *reader) origin(place string) policy.Origin {
	return policy.Origin{Source: r.name + ": " + place}
}

func (r *reader) left(place, why string) { r.Left = append(r.Left, Left{place, why}) }

func (r *reader) fail(place, format string, args ...any) {
	r.errs = append(r.errs, &policy.Error{Origin: policy.Origin{Source: r.name}, Code: policy.CodeValue, Msg: place + ": " + fmt.Sprintf(format, args...)})
}
