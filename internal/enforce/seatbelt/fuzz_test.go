package seatbelt_test

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// nasty returns texts that broke profiles, or could.
func nasty() []string {
	return []string{
		"plain", "with space", `I:\ and "quote"`, `\`, `\\`, `"`, `")(allow default)("`, `"))(allow file* (subpath "/"`, ";", "; (allow default)",
		"#|", "|#", "#\"", "'", "`", ",@x", "(", ")", "((", "\u202e", "e\u0301", "\u00e9", "\U0001f600", "\\u202e", `\x41`, `\n`,
		strings.Repeat("x", 199), strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("ü", 300), strings.Repeat("ab\U0001f600", 90),
		strings.Repeat(`\`, 400), "^.*$", "[a-z]", "{1,2}", "*", "?", "**", "$HOME", "%s%n", "-flag",
		"a\nb", "a\rb", "a\x00b", "\x7f", "\x1b[31m", "\xff\xfe", "\u0085", "\u2028(allow default)",
	}
}

// FuzzQuote: what Quote accepts reads back as itself. It refuses only control characters and
// invalid UTF-8.
func FuzzQuote(f *testing.F) {
	for _, s := range nasty() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := fingerprint.Quote(s)
		if bad := !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl); bad != (err != nil) {
			t.Fatalf("%q: %v", s, err)
		}
		if err != nil {
			return
		}
		if got, err := String(q); err != nil || got != s {
			t.Fatalf("%q: written %s, read %q, %v", s, q, got, err)
		}
	})
}

// FuzzInjection: whatever stands in a policy, the profile has the forms that
// a harmless policy of the same shape has, compiles, and keeps its promises.
func FuzzInjection(f *testing.F) {
	for _, s := range nasty() {
		f.Add(s, s)
		f.Add("x/"+s+"/y", "file\n(allow default)")
	}
	f.Fuzz(func(t *testing.T, name, origin string) {
		text, err := seatbelt.Profile(hostile(name, origin), seatbelt.Options{Session: testSession, Protect: []string{"/Users/u/p/" + name}})
		if err != nil {
			return
		}
		n, err := Read(text)
		if err != nil {
			t.Fatalf("%q, %q: %v\n%s", name, origin, err, text)
		}
		plain, err := seatbelt.Profile(hostile(harmless(name), "--rw"), seatbelt.Options{Session: testSession, Protect: []string{"/Users/u/p/" + harmless(name)}})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Read(plain); err != nil || n != m {
			t.Fatalf("%q, %q: %d forms, %d without them (%v)\n%s", name, origin, n, m, err, text)
		}
		p, err := Compile(text, MacOS15, nil)
		if err != nil {
			t.Fatalf("%q, %q: %v\n%s", name, origin, err, text)
		}
		if p.Allowed("lsopen", Target{}) || p.Allowed("file-read-data", file("/secret")) ||
			p.Allowed("file-write-data", file("/Users/u/p/"+name)) || p.Allowed("signal", Target{Process: "others"}) ||
			!p.Allowed("mach-lookup", service(fingerprint.Name(testSession)+".allow")) || p.Allowed("mach-lookup", service(fingerprint.Name(testSession)+".deny")) {
			t.Fatalf("%q, %q: a promise is broken\n%s", name, origin, text)
		}
	})
}

// hostile is a policy that has a name and an origin in every place.
func hostile(name, origin string) *resolve.Resolved {
	from := policy.Origin{Source: origin}
	p := "/Users/u/x/" + name
	r := macPolicy(resolve.Path{
		Path: p, Access: allAccess, Mode: fs.ModeDir, Written: p, Links: []string{p + "/l"},
		Rule: policy.Rule{Path: origin, Origin: from},
	}, flag("/Users/u/p", policy.Read|policy.Write, fs.ModeDir))
	r.Dir, r.TempDir, r.Home = p+"/d", p+"/t", "/Users/"+strings.ReplaceAll(name, "/", "_")
	r.Deny = []resolve.DenyPath{
		{Pattern: p + "/deny", Deny: policy.Named{Value: origin, Origin: from}},
		{Pattern: glob.QuoteMeta(p) + "/**/*.pem", Glob: true, Deny: policy.Named{Value: origin, Origin: from}},
	}
	r.Net = resolve.ResolvedNet{Mode: resolve.NetOpen, From: from, Unix: []resolve.Path{{Path: p + "/s", Rule: policy.Rule{Path: origin, Origin: from}}}}
	return r
}

// harmless renames the elements of a name, equal ones alike.
func harmless(name string) string {
	names := map[string]string{}
	elems := strings.Split(name, "/")
	for i, e := range elems {
		if e == "" || e == "." || e == ".." || e == "l" || e == "d" || e == "t" {
			continue
		}
		if names[e] == "" {
			names[e] = fmt.Sprintf("n%d", len(names))
		}
		elems[i] = names[e]
	}
	return strings.Join(elems, "/")
}

// FuzzGlob: the regular expression matches what the glob matches, and what
// else it matches differs only in characters outside ASCII.
func FuzzGlob(f *testing.F) {
	for _, g := range []string{
		"/**/.env", "/a/**/b/**/c", "/**/**/x", "/a/*.pem", "/a/[a-c]x", "/a/[!a-c]x", "/a/?", "/a/**", `/a\*/b*`, "/a/[.-]b", "/a/[]x]y", `/a/[\]]`,
		"/a/[+-9]", "/**", "/*", "/a/x*y*z", "/a.b/(c)|d$/*", "/a/[é]*", "/a/*/b",
	} {
		for _, p := range []string{"/a/b/c", "/.env", "/a/x/.env/y", "/a/k.pem", "/a/bx", "/a/zx", "/a/é", "/a*/bb", "/a/.b", "/a/]y", "/a.b/(c)|d$/e", "/aXb/c/e", "/x", "/a/x/b/y/c/z"} {
			f.Add(g, p)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, p string) { checkGlob(t, pattern, p) })
}

// TestGlobsAgree draws globs and paths that are near to each other.
func TestGlobsAgree(t *testing.T) {
	part := rapid.SampledFrom([]string{"*", "?", "[a-c]", "[!a-c]", "[+-9]", "[^.]", "[]a]", "[é-ü]", `\*`, "a", "b", ".", "-", "é", "+", "$", "("})
	name := rapid.OneOf(rapid.Just("**"), rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "")
	}))
	word := rapid.StringOfN(rapid.RuneFrom([]rune("aabbcd.-é*+$(]/")), 1, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		pattern := "/" + strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/")
		checkGlob(t, pattern, path.Clean("/"+word.Draw(t, "path")))
	})
}

// checkGlob compares what a glob and its regular expression match.
func checkGlob(t interface{ Fatalf(string, ...any) }, pattern, p string) {
	g, err := glob.Parse(pattern)
	if err != nil || !utf8.ValidString(pattern+p) || strings.ContainsFunc(pattern+p, unicode.IsControl) || path.Clean("/"+p) != p || p == "/" {
		return
	}
	base, rest := seatbelt.SplitGlob(g)
	if len(rest) == 0 {
		return
	}
	re, err := seatbelt.GlobRegex(base, rest)
	if err != nil {
		return // refused: the command does not start
	}
	q, err := fingerprint.Quote(re)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	prof, err := Compile("(version 1)(deny default)(allow file-read* (regex "+q+"))", MacOS26, nil)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	got, want := prof.Allowed("file-read-data", file(p)), g.Match(p)
	ascii := strings.IndexFunc(pattern+p, func(r rune) bool { return r > unicode.MaxASCII }) < 0
	if want && !got || ascii && got != want {
		t.Fatalf("%s on %s: %s matches %v, the glob %v", pattern, p, re, got, want)
	}
}
