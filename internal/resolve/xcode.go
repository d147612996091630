package resolve

import (
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// wholeApp widens a rule of the baseline that leads to the developer directory inside an
// Xcode, to all that this Xcode reads of itself: the shims in /usr/bin fail if its
// Info.plist or its SharedFrameworks are closed. It is not known before where the rule
// leads: it may go by xcode-select(1)'s link or by DEVELOPER_DIR, which may also name the
// .app (xcrun(1)).
func wholeApp(w *host.Walker, p *Path) {
	app := strings.TrimSuffix(strings.TrimSuffix(p.Path, "/Developer"), "/Contents")
	if !strings.HasSuffix(app, ".app") || p.Access&policy.Exec == 0 {
		return
	}
	if pl, err := w.Walk(app + "/Contents"); err == nil && pl.Gone == "" && pl.Path == app+"/Contents" {
		p.Path = pl.Path
		p.Mode = pl.Stat.Mode.Type()
		p.ID = pl.Stat.ID
	}
}
