package rule

import (
	"fmt"
	"slices"
)

// Warning says what to think of about a rule that is not wrong, or "".
func Warning(r *Rule) string {
	if r.Form != Below || !slices.Contains(publicSuffixes[:], r.Name) {
		return ""
	}
	return fmt.Sprintf("anybody can have a name below %s: %s allows them all", r.Name, r.Host())
}

// publicSuffixes are names below which anybody can have one. The list is short: it has those
// that people write by mistake.
var publicSuffixes = [...]string{
	"co.uk", "org.uk", "ac.uk", "gov.uk", "me.uk", "com.au", "net.au", "org.au", "co.nz", "co.za", "co.jp",
	"ne.jp", "or.jp", "co.kr", "or.kr", "co.in", "net.in", "org.in", "com.br", "net.br", "org.br", "com.cn",
	"net.cn", "org.cn", "com.mx", "com.ar", "com.tr", "com.tw", "com.hk", "com.sg", "com.ua", "com.pl", "co.il",
	"co.id", "co.th", "github.io", "gitlab.io", "codeberg.page", "githubusercontent.com", "pages.dev",
	"workers.dev", "r2.dev", "vercel.app", "netlify.app", "herokuapp.com", "fly.dev", "onrender.com",
	"railway.app", "deno.dev", "replit.app", "repl.co", "glitch.me", "surge.sh", "web.app", "firebaseapp.com",
	"appspot.com", "run.app", "cloudfunctions.net", "storage.googleapis.com", "amazonaws.com",
	"s3.amazonaws.com", "cloudfront.net", "elasticbeanstalk.com", "azurewebsites.net", "azureedge.net",
	"windows.net", "blob.core.windows.net", "cloudapp.azure.com", "trycloudflare.com", "ngrok.io", "ngrok.app",
	"ngrok-free.app", "loca.lt", "blogspot.com", "wordpress.com", "readthedocs.io", "hf.space",
	"sharepoint.com", "myshopify.com", "digitaloceanspaces.com", "b-cdn.net", "fastly.net", "duckdns.org",
	"nip.io", "sslip.io", "lhr.life", "serveo.net", "webhook.site", "requestcatcher.com", "oast.fun",
	"oast.pro", "interact.sh",
}
