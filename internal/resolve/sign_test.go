package resolve

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
)

// signingHost returns a host whose user signs by SSH, and whose agent has a socket.
func signingHost(t *testing.T) host.Host {
	t.Helper()
	h := hosttest.Disk(t)
	dir, err := os.MkdirTemp("", "s") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	h.Env = append(h.Env, "SSH_AUTH_SOCK="+dir+"/agent", "GIT_CONFIG_GLOBAL="+h.Home+"/gitconfig")
	fakeRepo(&h, t, "code/Project/.git")
	hosttest.Write(&h, t, "key.pub", "ssh-ed25519 AAAA me\n")
	hosttest.Write(&h, t, "other.pub", "ssh-ed25519 BBBB me\n")
	h.Dir = h.Home + "/code/Project"
	return h
}

const signsBySSH = "[commit]\n\tgpgsign = true\n[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = ~/key.pub\n"

// TestSignConditions includes another key under conditions: those that can't be decided are told.
func TestSignConditions(t *testing.T) {
	h := signingHost(t)
	hosttest.Write(&h, t, "other.cfg", "[user]\n\tsigningkey = ~/other.pub\n")
	hosttest.Write(&h, t, "same.cfg", "[user]\n\tsigningkey = ~/key.pub\n")
	link := h.Home + "/linked"
	if err := os.Symlink(h.Home+"/code", link); err != nil {
		t.Fatal(err)
	}
	const other, key, unsaid = "/other.pub", "/key.pub", "it is not known which user.signingkey counts"
	for condition, want := range map[string]string{
		"gitdir:~/code/": other, "gitdir:~/linked/": other, "gitdir:code/": other, "gitdir:Project/.git": other, "gitdir:~/code/Project/.git": other,
		"gitdir:./code/": other, "gitdir:~/code": key, "gitdir:~/CODE/": key, "gitdir:project/": key, "gitdir:ode/": key, "gitdir:~/elsewhere/": key,
		"gitdir:~/code/Project/.git/": key,
		"gitdir/i:~/CODE/":            other, "gitdir/i:PROJECT/": other, "gitdir/i:~/elsewhere/": key,
		"gitdir:~/c*/": unsaid, "gitdir:**/x/": unsaid, "onbranch:main": unsaid, "hasconfig:remote.*.url:https://example.org/**": unsaid,
		"nonsense:x": key,
	} {
		hosttest.Write(&h, t, "gitconfig", signsBySSH+"[includeIf \""+condition+"\"]\n\tpath = other.cfg\n")
		got, err := Sign(&h)
		switch {
		case err != nil && (want != unsaid || !strings.Contains(err.Error(), unsaid)):
			t.Errorf("%s: %v", condition, err)
		case err == nil && (want == unsaid || filepath.Base(got.FS.Rules[0].Path) != want[1:]):
			t.Errorf("%s: %v, want %s", condition, got.FS.Rules, want)
		}
	}
	for _, text := range []string{ // it does not matter whether these hold
		signsBySSH + "[includeIf \"onbranch:x\"]\n\tpath = same.cfg\n",
		"[includeIf \"onbranch:x\"]\n\tpath = other.cfg\n" + signsBySSH,
	} {
		hosttest.Write(&h, t, "gitconfig", text)
		if _, err := Sign(&h); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	hosttest.Write(&h, t, "deep.cfg", "[include]\n\tpath = other.cfg\n")
	hosttest.Write(&h, t, "gitconfig", signsBySSH+"[includeIf \"onbranch:x\"]\n\tpath = deep.cfg\n")
	if _, err := Sign(&h); err == nil {
		t.Error("what an unknown include includes was taken for known")
	}
}

// TestSignReplacedKey replaces the public key between the look at it and the resolution.
func TestSignReplacedKey(t *testing.T) {
	h := signingHost(t)
	hosttest.Write(&h, t, "gitconfig", signsBySSH)
	hosttest.Write(&h, t, "private", "-----BEGIN OPENSSH PRIVATE KEY-----\n")
	resolve := func(swap func()) error {
		p, err := Sign(&h)
		if err != nil {
			t.Fatal(err)
		}
		swap()
		_, err = Policy(p, h)
		return err
	}
	if err := resolve(func() {}); err != nil {
		t.Fatalf("control: %v", err)
	}
	err := resolve(func() {
		_ = os.Remove(h.Home + "/key.pub")
		_ = os.Symlink(h.Home+"/private", h.Home+"/key.pub")
	})
	if err == nil || !strings.Contains(err.Error(), "/private is no public key") {
		t.Errorf("a link to a private key: %v", err)
	}
	_ = os.Remove(h.Home + "/key.pub")
	hosttest.Write(&h, t, "key.pub", "ssh-ed25519 AAAA me\n")
	read := h.ReadFile
	h.ReadFile = func(name string) ([]byte, error) { // the file changes places while it is read
		text, err := read(name)
		if strings.HasSuffix(name, "/key.pub") {
			_ = os.Rename(h.Home+"/key.pub", h.Home+"/away")
			_ = os.WriteFile(h.Home+"/key.pub", text, 0o600)
		}
		return text, err
	}
	if err := resolve(func() {}); err == nil || !strings.Contains(err.Error(), "has just been replaced") {
		t.Errorf("a file in its place: %v", err)
	}
}
