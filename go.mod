module github.com/zsbx/zsbx

go 1.26
