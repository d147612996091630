package procfs

import (
	"fmt"
	"os"
	"strconv"

	"github.com/zsbx/zsbx/internal/files"
)

func Path(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }

// StatusOf reads a file of some kilobytes with lines like those of proc_pid_status(5),
// and returns what Status makes of it.
func StatusOf(path string) (map[string][]string, error) {
	b, err := files.ReadInto(path, make([]byte, 4096))
	return Status(string(b)), err
}

// Look reads /proc/PID/stat. If the first thread has ended (pthread_exit(3)), the state is
// that of a living thread: the first one is a zombie until the last has ended.
func Look(pid int) (Stat, error) {
	s, err := LookAt("/proc/" + strconv.Itoa(pid))
	if err == nil && s.State == "Z" && s.Threads > 1 {
		if t, ok := OtherThread(pid); ok {
			s.State = t.State
		}
	}
	return s, err
}

// LookAt reads the stat file in the /proc directory of a process or a thread.
func LookAt(dir string) (Stat, error) {
	var buf [1024]byte // room for the longest line
	b, err := files.ReadInto(dir+"/stat", buf[:])
	if err != nil {
		return Stat{}, err
	}
	s, err := ParseStat(b)
	if err != nil {
		err = fmt.Errorf("%s/stat: %w", dir, err)
	}
	return s, err
}

// OtherThread looks at a living thread of a process other than its first, if there is
// one. Pid in the Stat is the thread's number.
func OtherThread(pid int) (Stat, bool) {
	tasks, _ := os.ReadDir(Path(pid, "task"))
	for _, t := range tasks {
		s, err := LookAt(Path(pid, "task/"+t.Name()))
		if err == nil && s.Pid != pid && s.State != "Z" && s.State != "X" {
			return s, true
		}
	}
	return Stat{}, false
}
