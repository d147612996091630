package track_test

import (
	"context"
	"fmt"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/track"
)

// A session that was left running, by this program or by one that was killed, is found by its name.
func ExampleStore_Reap() {
	_, err := sandbox.Run(context.Background(), nil, sandbox.Options{
		Args:      []string{"sh", "-c", "sleep 1000 &"},
		Name:      "example-job",
		TrackOnly: true,
		Keep:      true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := track.OpenStore()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	report, err := store.Reap(ctx, "example-job")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("nothing is left:", report.Done())
	// Output: nothing is left: true
}
