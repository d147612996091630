// Package cast stands in for github.com/spf13/cast, with which viper converts the types of
// settings. That package links html/template and fills tables when it is initialised,
// which would take a fifteenth of zsbx's start. zsbx's settings need no conversion. Only
// what viper calls is here.
package cast

import "time"

// as returns a value that has the type already, and the zero value for another one.
func as[T any](v any) T {
	t, _ := v.(T)
	return t
}

// These are named for the type that they are asked for.

func ToBool(v any) bool                                { return as[bool](v) }
func ToBoolSlice(v any) []bool                         { return as[[]bool](v) }
func ToDuration(v any) time.Duration                   { return as[time.Duration](v) }
func ToDurationSlice(v any) []time.Duration            { return as[[]time.Duration](v) }
func ToFloat64(v any) float64                          { return as[float64](v) }
func ToFloat64Slice(v any) []float64                   { return as[[]float64](v) }
func ToInt(v any) int                                  { return as[int](v) }
func ToInt32(v any) int32                              { return as[int32](v) }
func ToInt64(v any) int64                              { return as[int64](v) }
func ToIntSlice(v any) []int                           { return as[[]int](v) }
func ToString(v any) string                            { return as[string](v) }
func ToStringMap(v any) map[string]any                 { return as[map[string]any](v) }
func ToStringMapString(v any) map[string]string        { return as[map[string]string](v) }
func ToStringMapStringSlice(v any) map[string][]string { return as[map[string][]string](v) }
func ToStringSlice(v any) []string                     { return as[[]string](v) }
func ToTime(v any) time.Time                           { return as[time.Time](v) }
func ToUint(v any) uint                                { return as[uint](v) }
func ToUint16(v any) uint16                            { return as[uint16](v) }
func ToUint32(v any) uint32                            { return as[uint32](v) }
func ToUint64(v any) uint64                            { return as[uint64](v) }
func ToUint8(v any) uint8                              { return as[uint8](v) }
func ToUintSlice(v any) []uint                         { return as[[]uint](v) }
