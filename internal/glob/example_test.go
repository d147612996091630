package glob_test

import (
	"fmt"

	"github.com/zsbx/zsbx/internal/glob"
)

func ExampleGlob() {
	g, err := glob.Parse("/src/**/*.pem")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Match("/src/app/key.pem"), g.Match("/src/app/key.go"), g.MayMatchBelow("/usr"))
	// Output: true false false
}
