//go:build !linux

package apply

import (
	"errors"

	"github.com/zsbx/zsbx/internal/layer"
)

var errNoLayers = errors.New("there are no layers on this system")

func Apply(*layer.Layer, Options) (Result, error) { return Result{}, errNoLayers }

func Undo(*layer.Layer, Options) error { return errNoLayers }

func Drop(*layer.Layer, bool) error { return errNoLayers }
