package policy_test

import (
	"fmt"
	"os"

	"github.com/zsbx/zsbx/policy"
)

// A policy is made from files, from what is built in and from what a program adds. Package sandbox
// runs commands under it.
func Example() {
	file, err := policy.Decode("policy.toml", []byte(`
[fs]
rw = ["."]
deny = ["**/.env"]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	tightens, wider := file.OnlyTightens(policy.Baseline("linux"))
	fmt.Println(tightens, wider[0].Key, wider[0].Value, wider[0].Origin)

	asked := &policy.Policy{}
	asked.FS.Rules = []policy.Rule{{Path: "~/data", Access: policy.Read, Origin: policy.Origin{Source: "settings"}}}
	if err := policy.Merge(file, asked).EncodeTOML(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// false fs.rw "." policy.toml:3:7
	// [fs]
	// ro = [
	//   "~/data",  # settings
	// ]
	// rw = [
	//   ".",  # policy.toml:3:7
	// ]
	// deny = [
	//   "**/.env",  # policy.toml:4:9
	// ]
}

// All errors are found at once, each with its place.
func ExampleDecode() {
	_, err := policy.Decode("policy.toml", []byte(`
[fs]
read = ["/etc"]
[net]
connect_tcp = [443, 70000]
`))
	fmt.Println(err)
	// Output:
	// policy.toml:3:1: unknown key "read" in [fs]: the keys are ro, rox, rw, rw_noexec, deny, home, writes, system
	// policy.toml:5:21: port 70000 is not between 1 and 65535
}
