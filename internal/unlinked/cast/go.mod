module github.com/spf13/cast

go 1.26.0
