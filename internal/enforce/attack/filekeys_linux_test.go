package attack_test

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileKeyActs use the keys of encrypted file systems (fscrypt). A process that can open a
// directory for reading may remove the user's key.
func fileKeyActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"key-remove": func(a []string) error {
			return onDir(a[0], unix.FS_IOC_REMOVE_ENCRYPTION_KEY, unsafe.Pointer(&unix.FscryptRemoveKeyArg{Key_spec: fileKey(a[0])}))
		},
		"key-add": func(a []string) error { _, err := addFileKey(a[0]); return err },
	}
}

func onDir(dir string, request uintptr, arg unsafe.Pointer) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return raw(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
}

// fileKey returns the key of an encrypted directory, or zero.
func fileKey(dir string) (key unix.FscryptKeySpecifier) {
	get := struct {
		size   uint64
		policy unix.FscryptPolicyV2
	}{size: uint64(unsafe.Sizeof(unix.FscryptPolicyV2{}))}
	if onDir(dir, unix.FS_IOC_GET_ENCRYPTION_POLICY_EX, unsafe.Pointer(&get)) == nil {
		key.Type = unix.FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER
		copy(key.U[:], get.policy.Master_key_identifier[:])
	}
	return key
}

func addFileKey(dir string) (id [16]byte, err error) {
	add := struct {
		unix.FscryptAddKeyArg
		key [64]byte
	}{key: [64]byte{7}}
	add.Key_spec.Type, add.Raw_size = unix.FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER, uint32(len(add.key))
	err = onDir(dir, unix.FS_IOC_ADD_ENCRYPTION_KEY, unsafe.Pointer(&add))
	copy(id[:], add.Key_spec.U[:])
	return id, err
}

// TestFileKeys: encrypted files outside stay open to their user, although the command may read
// them.
func TestFileKeys(t *testing.T) {
	needSeccomp(t)
	needLandlock(t, 1)
	p := newPlace(t)
	// On any file system and for any user, since the filter refuses the call first.
	for _, act := range []string{"key-remove", "key-add"} {
		if got := p.try(t, p.plan(), act, p.in); got != unix.EPERM {
			t.Errorf("%s without encryption: %v", act, got)
		}
		if got := p.try(t, nil, act, p.in); got == unix.EPERM {
			t.Errorf("control: %s without encryption: %v", act, got)
		}
	}
	dir := encryptedDir(t, p)
	present := func() bool {
		s := unix.FscryptGetKeyStatusArg{Key_spec: fileKey(dir)}
		if err := onDir(dir, unix.FS_IOC_GET_ENCRYPTION_KEY_STATUS, unsafe.Pointer(&s)); err != nil {
			t.Fatal(err)
		}
		return s.Status == unix.FSCRYPT_KEY_STATUS_PRESENT
	}
	for _, act := range []string{"key-remove", "key-add"} {
		if got := p.try(t, p.plan(), act, dir); got != unix.EPERM {
			t.Errorf("%s: %v", act, got)
		}
	}
	if !present() {
		t.Error("the key is gone")
	}
	if got := p.try(t, nil, "key-remove", dir); got != 0 || present() {
		t.Errorf("control: without zsbx: %v", got)
	}
}

// encryptedDir mounts a file system with an encrypted directory.
func encryptedDir(t *testing.T, p *place) string {
	at := p.in + "/mounted"
	mountImage(t, p, at, "mkfs.ext4", "-q", "-O", "encrypt")
	dir := at + "/vault"
	os.Mkdir(dir, 0o755)
	id, err := addFileKey(dir)
	if err != nil {
		t.Skipf("no encryption of files: %v", err)
	}
	policy := unix.FscryptPolicyV2{Version: 2, Contents_encryption_mode: unix.FSCRYPT_MODE_AES_256_XTS, Filenames_encryption_mode: unix.FSCRYPT_MODE_AES_256_CTS, Flags: 3, Master_key_identifier: id}
	if err := onDir(dir, unix.FS_IOC_SET_ENCRYPTION_POLICY, unsafe.Pointer(&policy)); err != nil {
		t.Fatal(err)
	}
	return dir
}
